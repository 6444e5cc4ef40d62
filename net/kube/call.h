/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the client share: one call, from request to answer. */
#pragma once

#include <curl/curl.h>

#include "base/buf.h"
#include "net/kube/client.h"
#include "net/kube/multi.h"

struct kube_call {
	struct kube_client *client;
	struct kube_call *prev, *next;
	CURL *easy;
	struct curl_slist *headers;
	char *path;
	enum kube_method method;
	uint64_t idle_timeout_usec;
	uint64_t heard_usec; /* the last byte, or the start */
	bool any_content_type;
	bool answered; /* header seen, and looked at */
	bool cancelled;
	bool queued; /* begun while curl was at work: it is handed to curl after that */
	int aborted; /* -errno: why we ended it ourselves */
	struct buf body;
	void (*on_answered)(void *arg);
	int (*on_data)(void *arg, struct str piece);
	void (*on_done)(void *arg, const struct kube_answer *answer);
	void *arg;
	char curl_error[CURL_ERROR_SIZE];
};

struct kube_client {
	struct loop *loop;
	const struct clock *clock;
	struct kube_config config;
	struct kube_multi *multi;
	struct kube_call *calls;
	struct loop_timer idle; /* the nearest end of somebody's patience */
	char *user_agent;
	char *base_url;             /* what paths are appended to */
	struct curl_slist *connect; /* where to connect when that is not what the URL says */
	uint64_t connect_timeout_usec;
	bool sweep;  /* calls were cancelled while curl was at work */
	bool queued; /* calls were begun then */
	bool ending; /* a call is being ended by us, not by curl */
	bool destroyed;
	struct kube_client_stats stats;
};

/* Sets up the easy handle for the request. -ENOMEM, -EINVAL. */
int kube_call_prepare(struct kube_call *call, const struct kube_request *request, struct err *e);
/* What came of it; text and body point into call and *text. */
void kube_call_answer(
	struct kube_call *call, CURLcode result, struct kube_answer *ret, struct err *text);
