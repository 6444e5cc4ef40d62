/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's multi interface on the loop: sockets and the one timer. Knows nothing of HTTP or
 * Kubernetes. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

#include "base/loop.h"

struct kube_multi;

struct kube_multi_ops {
	/* A transfer ended; easy is out of the multi already. */
	void (*finished)(void *arg, CURL *easy, CURLcode result);
	/* curl has returned from what it did: what could not be done from within its callbacks can
	 * be done now. */
	void (*settled)(void *arg);
	void *arg;
};

/* connections_max: open at once, and kept for the next transfer. */
int kube_multi_create(struct kube_multi **ret_m, struct loop *l, unsigned int connections_max,
	const struct kube_multi_ops *ops);
/* Every transfer must have been removed, and kube_multi_busy be false. Takes NULL. Memory is freed
 * as the loop closes the handles. */
void kube_multi_destroy(struct kube_multi *m);
int kube_multi_add(struct kube_multi *m, CURL *easy);
void kube_multi_remove(struct kube_multi *m, CURL *easy);
/* True within callbacks of curl and of ops, where transfers may be added, but (in_curl) not
 * removed. */
bool kube_multi_in_curl(const struct kube_multi *m);
bool kube_multi_busy(const struct kube_multi *m);
