// SPDX-License-Identifier: Apache-2.0
/* Runs a fuzz target over saved inputs without a fuzzer: every file named, and every file directly
 * in a directory named, goes through it once. What a fuzzer once found stays found. */
#include <dirent.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX (16U << 20)

static size_t n_inputs;

/* The copy has exactly the input's size, so that AddressSanitizer sees a read past its end. */
static int run_file(const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return -1;
	}
	struct stat st;
	if (fstat(fileno(f), &st) < 0 || st.st_size > INPUT_MAX) {
		fprintf(stderr, "%s: cannot be read, or is larger than %u bytes\n", path,
			INPUT_MAX);
		return -1;
	}
	size_t n = (size_t)st.st_size;
	_cleanup_free_ uint8_t *data = malloc(n ? n : 1);
	if (!data || fread(data, 1, n, f) != n) {
		fprintf(stderr, "%s: cannot be read whole\n", path);
		return -1;
	}
	(void)LLVMFuzzerTestOneInput(data, n);
	n_inputs++;
	return 0;
}

static int run_directory(const char *path)
{
	_cleanup_closedir_ DIR *d = opendir(path);
	if (!d) {
		perror(path);
		return -1;
	}
	int r = 0;
	const struct dirent *entry;
	while ((entry = readdir(d))) {
		char file[4096];
		struct stat st;

		if (entry->d_name[0] == '.')
			continue;
		int n = snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
		if (n < 0 || (size_t)n >= sizeof file || stat(file, &st) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		if (run_file(file) < 0)
			r = -1;
	}
	return r;
}

int main(int argc, char **argv)
{
	int r = 0;
	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (stat(argv[i], &st) < 0) {
			perror(argv[i]);
			r = -1;
		} else if ((S_ISDIR(st.st_mode) ? run_directory(argv[i]) : run_file(argv[i])) < 0) {
			r = -1;
		}
	}
	printf("%zu inputs replayed\n", n_inputs);
	/* An empty corpus proves nothing. */
	return r < 0 || n_inputs == 0;
}
