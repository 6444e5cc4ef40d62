/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sample/container.h"

#include <math.h>

#include "base/clock.h"
#include "base/num.h"

enum step cpu_step(uint64_t before_usec, uint64_t after_usec, uint64_t elapsed_usec,
	unsigned int n_cpus, uint64_t *ret_used_usec)
{
	uint64_t possible;

	if (after_usec < before_usec)
		return STEP_BACKWARDS;
	if (__builtin_mul_overflow(elapsed_usec, (uint64_t)n_cpus, &possible))
		possible = UINT64_MAX;
	possible = u64_add_sat(possible, possible / 10);
	possible = u64_add_sat(possible, 100 * USEC_PER_MSEC);
	if (after_usec - before_usec > possible)
		return STEP_IMPOSSIBLE;
	*ret_used_usec = after_usec - before_usec;
	return STEP_OK;
}

void container_init(struct container *c, const struct cgleaf *leaf, struct usage_history *usage,
	const struct knobs *knobs)
{
	*c = (struct container){
		.leaf = *leaf, .usage = usage, .knobs = knobs, .throttled_fraction = NAN};
}

static int64_t as_amount(uint64_t bytes)
{
	return (int64_t)MIN(bytes, (uint64_t)INT64_MAX);
}

void container_attach(
	struct container *c, struct usage_history *usage, const struct knobs *knobs, int64_t t_ns)
{
	c->usage = usage;
	c->knobs = knobs;
	if (c->held_peak_bytes > 0)
		(void)usage_add_memory(usage, t_ns, as_amount(c->held_peak_bytes));
	c->held_peak_bytes = 0;
}

bool container_memory_limit(const struct container *c, uint64_t *ret_bytes)
{
	if (!c->limits_usec || c->limits.memory_max_bytes == CG_MAX)
		return false;
	*ret_bytes = c->limits.memory_max_bytes;
	return true;
}

double container_fullness(const struct container *c)
{
	uint64_t limit;

	if (!c->working_set_known)
		return 0;
	if (!container_memory_limit(c, &limit) || limit == 0)
		return (double)c->working_set_bytes /
		       9e18; /* fuller than nothing, less full than any with a limit */
	return (double)c->working_set_bytes / (double)limit;
}

/* What it had or was allowed when it was killed, as far as that is known; 0: nothing is. At its own
 * limit that limit was reached, whatever the last sample saw. At the pod's, the limit was shared,
 * and its peak tells more. */
static uint64_t bytes_at_kill(
	const struct container *c, enum oom_class class, int64_t request_bytes)
{
	uint64_t limit, bytes = c->last_working_set_bytes;
	bool limited = container_memory_limit(c, &limit);

	if (c->limits_usec && c->limits.peak_outcome == CG_OK)
		bytes = MAX(bytes, c->limits.peak_bytes);
	if (limited && (class == OOM_LIMIT || bytes > limit || bytes == 0))
		bytes = limit;
	if (request_bytes > 0)
		bytes = MAX(bytes, (uint64_t)request_bytes);
	return bytes;
}

void container_oom(struct container *c, struct cgio *io, enum oom_class class, bool vanished,
	int64_t t_ns, int64_t request_bytes)
{
	if (!c->usage)
		return;
	if (!vanished && !c->gone)
		cgleaf_read_limits(&c->leaf, io, &c->limits);
	if (oom_class_is_own(class) || c->usage->model->profile == PROFILE_VPA)
		(void)usage_record_oom(c->usage, c->knobs, t_ns,
			as_amount(bytes_at_kill(c, class, request_bytes)));
	else
		usage_count_oom(c->usage, t_ns);
}
