/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sample/oomcount.h"

#include "base/macros.h"

unsigned int oom_count_take(struct oom_count *c, const struct memory_events *e, uint64_t *ret_kills)
{
	uint64_t kills, groups = 0;

	*ret_kills = 0;
	if (!(e->seen & EVENT_OOM_KILL))
		return 0;
	if (e->oom_kill < c->kills) {
		oom_count_start(c, e, 0);
		return 0;
	}
	kills = e->oom_kill - c->kills;
	if ((e->seen & EVENT_OOM_GROUP_KILL) && e->oom_group_kill > c->group_kills)
		groups = e->oom_group_kill - c->group_kills;
	c->kills = e->oom_kill;
	c->group_kills = e->seen & EVENT_OOM_GROUP_KILL ? e->oom_group_kill : 0;
	if (kills == 0)
		return 0;
	*ret_kills = kills;
	groups = MIN(groups, MIN(kills, (uint64_t)OOM_INCIDENTS_MAX));
	return groups == 0 ? 1 : (unsigned int)groups;
}

void oom_count_start(struct oom_count *c, const struct memory_events *e, uint64_t fresh)
{
	c->kills = e->seen & EVENT_OOM_KILL ? e->oom_kill : 0;
	c->group_kills = e->seen & EVENT_OOM_GROUP_KILL ? e->oom_group_kill : 0;
	if (fresh == 0)
		return;
	/* How many groups the fresh kills were is only known when all are fresh. */
	if (fresh >= c->kills)
		*c = (struct oom_count){0};
	else
		c->kills -= fresh;
}

void oom_rise_take(struct oom_rise *r, const struct memory_events *e, uint64_t now_usec)
{
	if (!(e->seen & EVENT_OOM))
		return;
	if (r->known && e->oom > r->oom) {
		r->rose = true;
		r->rose_usec = now_usec;
	}
	r->known = true;
	r->oom = e->oom;
}

void oom_rise_is_news(struct oom_rise *r, uint64_t now_usec)
{
	if (!r->known || r->oom == 0)
		return;
	r->rose = true;
	r->rose_usec = now_usec;
}

bool oom_rise_is_recent(const struct oom_rise *r, uint64_t at_usec)
{
	return r->rose && (r->rose_usec >= at_usec || at_usec - r->rose_usec <= OOM_EVIDENCE_USEC);
}
