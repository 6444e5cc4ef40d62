/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/endpoint/process.h"

#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/num.h"

double process_cpu_seconds(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return (double)NAN;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

double process_resident_bytes(void)
{
	_cleanup_buf_ struct buf text = BUF_INIT(512);
	uint64_t pages;
	struct str rest;

	if (file_read(AT_FDCWD, "/proc/self/statm", &text, NULL) < 0)
		return (double)NAN;
	rest = buf_str(&text);
	(void)str_cut(&rest, ' '); /* the size of the address space */
	if (parse_u64(str_cut(&rest, ' '), &pages) < 0)
		return (double)NAN;
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

double process_open_fds(void)
{
	_cleanup_closedir_ DIR *d = opendir("/proc/self/fd");
	double n = -1; /* the directory's own */

	if (!d)
		return (double)NAN;
	for (const struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	return n;
}
