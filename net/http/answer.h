/* SPDX-License-Identifier: Apache-2.0 */
/* From a parsed request to what libmicrohttpd sends: routes, errors, bodies. */
#pragma once

#include <microhttpd.h>

#include "net/http/server.h"
#include "net/http/target.h"

/* One request, from its first line to its end. */
struct http_asked {
	int error; /* of the target: 0, -EINVAL or -ENAMETOOLONG */
	bool seen; /* its header is complete */
	struct http_target target;
};

bool http_is_get(const char *method); /* GET or HEAD */
/* Queues the answer. *ret_status: what it was. MHD_NO: the connection is to be closed. */
enum MHD_Result http_answer(const struct http_server_options *options,
	struct MHD_Connection *connection, const struct http_asked *asked, const char *path,
	const char *method, unsigned int *ret_status);
/* An answer that no handler makes: {"error": text}, and the connection is closed when close is set.
 */
enum MHD_Result http_answer_error(const struct http_server_options *options,
	struct MHD_Connection *connection, unsigned int status, const char *text,
	const char *header, const char *value);
