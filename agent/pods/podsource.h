/* SPDX-License-Identifier: Apache-2.0 */
/* Where the agent learns which pods are on its node: from the API server's watch, or from a file.
 */
#pragma once

#include <stdbool.h>

#include "agent/pods/tracker.h"
#include "base/err.h"
#include "base/loop.h"
#include "net/kube/client.h"
#include "net/kube/reflector.h"

#define PODSOURCE_FILE_MAX_BYTES (64U * 1024U * 1024U)
#define PODSOURCE_FILE_LOOK_USEC (2 * USEC_PER_SEC) /* between looks whether the file changed */

struct podsource;

#define PODSOURCE_SELECTOR_MAX (sizeof("spec.nodeName=") + POD_NAME_MAX)
/* What the watch of a node's pods asks for; selector is pointed into. */
void podsource_watch_options(struct kube_reflector_options *ret,
	char selector[PODSOURCE_SELECTOR_MAX], const char *node_name, uint64_t spread_usec);
/* Watches the pods of node_name. The first request waits a random time up to spread_usec. */
int podsource_create_api(struct podsource **ret, struct loop *loop, struct kube_client *client,
	const char *node_name, uint64_t spread_usec, struct tracker *tracker, struct err *e);
/* A PodList (or single Pods, one after the other) as JSON, read again when it changes. A file that
 * cannot be read now is an error; later it leaves the picture as it was. Pods of another node than
 * node_name (NULL: any) are left out. */
int podsource_create_file(struct podsource **ret, struct loop *loop, const char *path,
	const char *node_name, struct tracker *tracker, struct err *e);
/* Takes NULL. Before loop_finish and before the client's end. */
void podsource_destroy(struct podsource *s);

/* NULL: pods from a file. */
const struct kube_reflector *podsource_reflector(const struct podsource *s);
/* One sentence: what keeps it from telling the truth now; "" for nothing. */
const char *podsource_trouble(const struct podsource *s);
