/* SPDX-License-Identifier: Apache-2.0 */
/* How a part of the agent is. */
#pragma once

enum health {
	HEALTH_OK,
	HEALTH_NOTE,      /* works, with something worth knowing: no disk, API server away, node
			     unsupported */
	HEALTH_NOT_READY, /* nothing useful can be done yet */
	HEALTH_FAILED,    /* broken in a way that a restart may mend */
};
struct health_item {
	const char *name; /* "pods", "cgroup", "state", "publish"… */
	enum health health;
	const char *text; /* one sentence; "" for a plain ok */
};
