/* SPDX-License-Identifier: Apache-2.0 */
/* The address to listen on, as people write it, and the socket. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/str.h"

struct listen_address {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} u;
	socklen_t n;
	bool any; /* ":9870": every address, IPv4 and IPv6 */
};

/* ":9870", "127.0.0.1:9870", "[::1]:9870" ("localhost" stands for 127.0.0.1). Names are not looked
 * up. -EINVAL, with e saying what is accepted. */
int listen_address_parse(struct str s, struct listen_address *ret, struct err *e);
/* A listening, non-blocking, close-on-exec TCP socket; on a machine without IPv6 ":port" is IPv4
 * only. Returns the descriptor, or -errno with e saying what to do about it. *ret_port: the port in
 * use. */
int listen_socket(const struct listen_address *a, uint16_t *ret_port, struct err *e);
