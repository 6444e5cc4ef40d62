/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/entry.h"

const char *container_state_name(enum container_state state)
{
	static const char *const names[CONTAINER_STATES] = {
		[CONTAINER_SAMPLED] = "sampled",
		[CONTAINER_WAITING] = "waiting",
		[CONTAINER_NOT_FOUND] = "not found",
		[CONTAINER_NOT_MEASURABLE] = "not measurable",
		[CONTAINER_HELD] = "held",
	};

	return (unsigned int)state < CONTAINER_STATES ? names[state] : "unknown";
}
