/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/num.h"

#define ACCEPTED                                                                           \
	"accepted: :PORT (every address), IPV4:PORT or [IPV6]:PORT, for example :9870 or " \
	"127.0.0.1:9870"
#define BACKLOG 64

static int parse_host(struct str host, in_port_t port, struct listen_address *a)
{
	char text[INET6_ADDRSTRLEN];
	bool bracketed = host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';

	if (host.n == 0) {
		a->any = true;
		a->u.in6 = (struct sockaddr_in6){
			.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = in6addr_any};
		a->n = sizeof(a->u.in6);
		return 0;
	}
	if (bracketed)
		host = (struct str){host.p + 1, host.n - 2};
	else if (str_is(host, "localhost"))
		host = STR("127.0.0.1");
	if (str_copy(text, sizeof(text), host) < 0)
		return -EINVAL;
	if (bracketed) {
		a->u.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
		a->n = sizeof(a->u.in6);
		return inet_pton(AF_INET6, text, &a->u.in6.sin6_addr) == 1 ? 0 : -EINVAL;
	}
	a->u.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
	a->n = sizeof(a->u.in);
	return inet_pton(AF_INET, text, &a->u.in.sin_addr) == 1 ? 0 : -EINVAL;
}

int listen_address_parse(struct str s, struct listen_address *ret, struct err *e)
{
	struct listen_address a = {.n = 0};
	uint64_t port;
	size_t colon = s.n;

	while (colon > 0 && s.p[colon - 1] != ':')
		colon--;
	if (colon == 0)
		return err_set(
			e, EINVAL, "listen address \"%.*s\" has no port; " ACCEPTED, STR_ARG(s));
	if (parse_u64((struct str){s.p + colon, s.n - colon}, &port) < 0 || port > UINT16_MAX)
		return err_set(e, EINVAL,
			"listen address \"%.*s\": the port is not a number from 0 to "
			"65535; " ACCEPTED,
			STR_ARG(s));
	if (parse_host((struct str){s.p, colon - 1}, htons((uint16_t)port), &a) < 0)
		return err_set(e, EINVAL,
			"listen address \"%.*s\": what stands before the port is not an IP "
			"address; " ACCEPTED,
			STR_ARG(s));
	*ret = a;
	return 0;
}

static void describe(const struct listen_address *a, char *out, size_t n)
{
	char host[INET6_ADDRSTRLEN] = "";
	bool v6 = a->u.sa.sa_family == AF_INET6;
	unsigned int port = ntohs(v6 ? a->u.in6.sin6_port : a->u.in.sin_port);

	if (!a->any)
		(void)inet_ntop(a->u.sa.sa_family,
			v6 ? (const void *)&a->u.in6.sin6_addr : (const void *)&a->u.in.sin_addr,
			host, sizeof(host));
	(void)snprintf(out, n, v6 && !a->any ? "[%s]:%u" : "%s:%u", host, port);
}

/* What a person can do about it. */
static const char *advice(int error)
{
	switch (error) {
	case EADDRINUSE:
		return "another process listens there; end it, or choose another port with "
		       "--listen";
	case EACCES:
		return "ports below 1024 need the capability NET_BIND_SERVICE; choose a higher one "
		       "with --listen";
	case EADDRNOTAVAIL:
		return "no interface of this machine has that address; see --listen";
	case EAFNOSUPPORT:
		return "this machine has no IPv6; give an IPv4 address with --listen";
	default:
		return "see --listen";
	}
}

static int open_socket(const struct listen_address *a)
{
	static const int on = 1, off = 0;
	_cleanup_close_ int fd =
		socket(a->u.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* Without it a restart within a minute of the last connection is refused. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->u.sa.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, a->any ? &off : &on, sizeof(on));
	if (bind(fd, &a->u.sa, a->n) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int listen_socket(const struct listen_address *a, uint16_t *ret_port, struct err *e)
{
	struct listen_address used = *a;
	int fd = open_socket(&used);

	if (a->any && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)) {
		used.u.in =
			(struct sockaddr_in){.sin_family = AF_INET, .sin_port = a->u.in6.sin6_port};
		used.n = sizeof(used.u.in);
		fd = open_socket(&used);
	}
	if (fd >= 0 && getsockname(fd, &used.u.sa, &used.n) < 0) {
		int error = errno;
		(void)close(fd);
		fd = -error;
	}
	if (fd < 0) {
		char where[INET6_ADDRSTRLEN + 16];

		describe(a, where, sizeof(where));
		return err_set(
			e, -fd, "cannot listen on %s: %s (%s)", where, strerror(-fd), advice(-fd));
	}
	*ret_port =
		ntohs(used.u.sa.sa_family == AF_INET6 ? used.u.in6.sin6_port : used.u.in.sin_port);
	return fd;
}
