/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a saved history: refused, or one that can be gone on with, whatever it says. The
 * rest of the bytes are a DaemonSet's settings. */
#include <stdint.h>
#include <stdlib.h>

#include "rules/estimator.h"
#include "rules/instant.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void use(struct usage_history *u, const struct knobs *k)
{
	struct recommendation r;

	(void)usage_add_cpu(u, 400 * INSTANT_DAY, 12.5, 1);
	(void)usage_add_memory(u, 400 * INSTANT_DAY, 30 << 20);
	(void)usage_record_oom(u, k, 400 * INSTANT_DAY, 40 << 20);
	estimate(u, k, 1, 400 * INSTANT_DAY, &r, NULL);
	for (int b = 0; b < BOUNDS; b++)
		for (int i = 0; i < RESOURCES; i++)
			check(r.amounts[b].value[i] >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int profile = PROFILE_FINE; profile <= PROFILE_VPA; profile++) {
		struct checkpoint_cursor c = {.p = data, .n = size};
		struct usage_history u;
		struct model model;
		struct knobs k, own;
		struct err e;

		knobs_defaults(&k, (enum profile)profile);
		model_init(&model, &k);
		usage_init(&u, &model);
		if (usage_load(&u, &c, NULL, &e) == 0) {
			_cleanup_buf_ struct buf b = BUF_INIT(USAGE_SAVED_MAX);

			usage_save(&u, &b);
			check(b.error == 0);
			use(&u, &k);
		}
		if (knobs_override(&k, (struct str){(const char *)data, size}, &own, &e) == 0)
			check(own.profile == k.profile && own.margin_fraction >= 0);
	}
	return 0;
}
