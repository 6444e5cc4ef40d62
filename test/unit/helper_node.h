/* SPDX-License-Identifier: Apache-2.0 */
/* A Node on an API server that does what it is told: for tests of what talks to one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/publish/publisher.h"
#include "base/buf.h"
#include "net/kube/client.h"

#define FAKE_KEYS 512

struct fake_node {
	char name[64], uid[64], machine_id[64];
	char *key[FAKE_KEYS], *value[FAKE_KEYS];
	size_t n;

	/* What it answers: status, or error of the connection; 0: as a server should. */
	unsigned int status;
	int error;
	const char *message; /* of the Status */
	const char *raw;     /* a 200 with these bytes */
	const char *poison;  /* a patch that sets this key is refused, 422 */
	bool broken_patches; /* a patch is answered with 500 */
	int lost;            /* the error that a patch is answered with after it was taken */
	size_t limit;        /* of all annotations; 0: none */
	uint64_t retry_after_usec;

	struct kube_request request; /* under way */
	struct buf body;
	bool busy, cancelled;
	unsigned int reads, patches, taken;
	char *last_patch; /* that was taken */
	uint64_t random;
};

void fake_node_init(struct fake_node *f, const char *name);
void fake_node_finish(struct fake_node *f);
void fake_node_set(struct fake_node *f, const char *key, const char *value); /* NULL: remove */
const char *fake_node_get(const struct fake_node *f, const char *key);
struct publisher_port fake_node_port(struct fake_node *f);
/* Answers the request under way, in pieces of any size. */
void fake_node_answer(struct fake_node *f);
