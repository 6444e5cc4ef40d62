// SPDX-License-Identifier: Apache-2.0
/*
 * A load that does what it is told (instruction.h), and can be told something else while it runs:
 *
 *   WORKLOAD="cpu=50m memory=8Mi"      at the start
 *   WORKLOAD_FILE=/path                whenever this file changes
 *   POST / HTTP/1.1, port $WORKLOAD_PORT (8080; 0: none)
 *                                      the body is an instruction; GET / tells what is being done
 *
 * A wrong instruction is refused with the reason (HTTP 400, or on stderr) and the old one stands;
 * at the start it ends the program with status 2.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "instruction.h"
#include "load.h"

#define DEFAULT_PORT 8080
#define TICK_MSEC 200
#define REQUEST_MAX 4096

static char told[INSTRUCTION_TEXT_MAX];

static int tell(const char *text, size_t length, char *why, size_t why_size)
{
	struct instruction instruction;

	if (length >= sizeof(told)) {
		snprintf(why, why_size, "longer than %zu bytes", sizeof(told) - 1);
		return -1;
	}
	if (instruction_parse(text, length, &instruction, why, why_size) < 0)
		return -1;
	load_follow(&instruction);
	memcpy(told, text, length);
	told[length] = '\0';
	return 0;
}

/* Reads the instruction file again when it is another one than before. */
static void look_at_file(const char *path)
{
	static struct timespec seen_at;
	static off_t seen_size = -1;
	char text[INSTRUCTION_TEXT_MAX], why[160];
	struct stat st;
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 &&
		(st.st_size != seen_size || memcmp(&st.st_mtim, &seen_at, sizeof(seen_at)) != 0)) {
		seen_size = st.st_size;
		seen_at = st.st_mtim;
		n = read(fd, text, sizeof(text));
		if (n >= 0 && tell(text, (size_t)n, why, sizeof(why)) < 0)
			fprintf(stderr, "%s: %s\n", path, why);
	}
	close(fd);
}

static void answer(int fd, const char *status, const char *type, const char *body)
{
	char text[REQUEST_MAX];
	int n = snprintf(text, sizeof(text),
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: "
		"close\r\n\r\n%s",
		status, type, strlen(body), body);

	if (n > 0 && (size_t)n < sizeof(text))
		(void)!send(fd, text, (size_t)n, MSG_NOSIGNAL);
}

static void tell_status(int fd)
{
	struct load_status status = load_look();
	char body[INSTRUCTION_TEXT_MAX + 256], shown[INSTRUCTION_TEXT_MAX];

	/* The grammar allows no quote; line ends would not be JSON. */
	for (size_t i = 0; i < sizeof(shown); i++) {
		shown[i] = (unsigned char)told[i] < ' ' && told[i] ? ' ' : told[i];
		if (!told[i])
			break;
	}
	snprintf(body, sizeof(body),
		"{\"instruction\":\"%s\",\"held_bytes\":%" PRIu64 ",\"cached_bytes\":%" PRIu64
		",\"children\":%" PRIu64 "}\n",
		shown, status.held_bytes, status.cached_bytes, status.children);
	answer(fd, "200 OK", "application/json", body);
}

static size_t content_length(const char *head, const char *end)
{
	size_t length = 0;

	for (const char *line = head; line < end; line++) {
		if (strncasecmp(line, "\r\ncontent-length:", 17) != 0)
			continue;
		line += 17;
		line += strspn(line, " ");
		for (; *line >= '0' && *line <= '9' && length <= REQUEST_MAX; line++)
			length = length * 10 + (size_t)(*line - '0');
		break;
	}
	return length;
}

/* Reads one request whole; returns its body, or NULL when there is no whole request. */
static const char *read_request(int fd, char *text, size_t size, size_t *ret_length)
{
	size_t have = 0;
	const char *end;

	for (;;) {
		ssize_t n = recv(fd, text + have, size - 1 - have, 0);

		if (n <= 0)
			return NULL;
		have += (size_t)n;
		text[have] = '\0';
		end = strstr(text, "\r\n\r\n");
		if (!end) {
			if (have == size - 1)
				return NULL;
			continue;
		}
		*ret_length = content_length(text, end);
		if ((size_t)(end + 4 - text) + *ret_length > size - 1)
			return NULL;
		if ((size_t)(text + have - (end + 4)) >= *ret_length)
			return end + 4;
	}
}

static void serve_one(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	char text[REQUEST_MAX], why[160];
	const char *body;
	size_t length;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 2},
		sizeof(struct timeval));
	body = read_request(fd, text, sizeof(text), &length);
	if (!body)
		answer(fd, "400 Bad Request", "text/plain",
			"not a whole request of at most 4 KiB\n");
	else if (strncmp(text, "GET ", 4) == 0)
		tell_status(fd);
	else if (strncmp(text, "POST ", 5) != 0 && strncmp(text, "PUT ", 4) != 0)
		answer(fd, "405 Method Not Allowed", "text/plain", "GET or POST\n");
	else if (tell(body, length, why, sizeof(why)) < 0)
		answer(fd, "400 Bad Request", "text/plain", why);
	else
		tell_status(fd);
	close(fd);
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 8) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static int parse_port(const char *text)
{
	int port = 0;

	if (!text || !*text)
		return DEFAULT_PORT;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || port > 65535)
			return -1;
		port = port * 10 + (*text - '0');
	}
	return port <= 65535 ? port : -1;
}

static void end(int number)
{
	(void)number;
	_exit(0);
}

int main(void)
{
	const char *first = getenv("WORKLOAD"), *path = getenv("WORKLOAD_FILE"),
		   *directory = getenv("WORKLOAD_DIR");
	struct pollfd listener = {.fd = -1, .events = POLLIN};
	int port = parse_port(getenv("WORKLOAD_PORT"));
	char why[160];

	/* As the first process of a container it would ignore these by default. */
	signal(SIGTERM, end);
	signal(SIGINT, end);
	if (load_start(directory ? directory : "/tmp") < 0 || port < 0) {
		fprintf(stderr, "workload: %s\n",
			port < 0 ? "WORKLOAD_PORT: not a port" : "cannot start threads");
		return 2;
	}
	if (first && tell(first, strlen(first), why, sizeof(why)) < 0) {
		fprintf(stderr, "WORKLOAD: %s\n", why);
		return 2;
	}
	if (port > 0) {
		listener.fd = listen_on((uint16_t)port);
		if (listener.fd < 0) {
			fprintf(stderr, "workload: port %d: %s\n", port, strerror(-listener.fd));
			return 1;
		}
	}
	for (;;) {
		if (path)
			look_at_file(path);
		load_keep_children();
		if (poll(&listener, 1, TICK_MSEC) > 0)
			serve_one(listener.fd);
	}
}
