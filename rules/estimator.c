/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/estimator.h"

#include <math.h>
#include <stddef.h>

#include "rules/instant.h"

/* How the bounds move away from the target while little is known: base × (1 + multiplier ∕
 * confidence)^exponent. */
#define LOWER_MULTIPLIER 0.001 /* exponent −2 */
#define UPPER_MULTIPLIER 1.0   /* exponent 1 */
/* Profile fine: an upper bound of more than ten times its percentile says nothing but "too early"
 * (some three hours at the defaults), and a reader that took it for a bound would act on a number
 * without meaning. It is left out. */
#define UPPER_FACTOR_MAX 10.0

struct estimation {
	const struct usage_history *u;
	const struct knobs *k;
	struct explain *explain;
	double confidence[RESOURCES];
	int64_t minimum[RESOURCES];
	int64_t lower_floor, target_floor; /* memory: what an OOM taught; 0 none */
};

const char *explain_stage_name(enum explain_stage stage)
{
	static const char *const names[EXPLAIN_STAGES] = {"percentile", "margin", "confidence",
		"oom-floor", "minimum", "rounding", "maximum"};

	return (unsigned int)stage < EXPLAIN_STAGES ? names[stage] : "unknown";
}

static void explain(const struct estimation *s, enum bound bound, enum resource resource,
	enum explain_stage stage, double factor, int64_t before, int64_t amount)
{
	struct explain *x = s->explain;

	if (x && x->n < EXPLAIN_STEPS_MAX)
		x->steps[x->n++] = (struct explain_step){
			bound, resource, stage, factor, amount, before != amount};
}

/* The smaller of the time covered and the samples, both in intervals. */
static double confidence(int64_t first, int64_t last, double minutes, int64_t interval_ns)
{
	double span = (double)instant_since(last, first) / (double)interval_ns;
	int64_t whole_minutes = interval_ns / INSTANT_MINUTE;
	double interval_minutes = (double)whole_minutes +
				  (double)(interval_ns % INSTANT_MINUTE) / (double)INSTANT_MINUTE;

	return fmin(span, minutes / interval_minutes);
}

static double confidence_of(const struct usage_history *u, const struct knobs *k, enum resource r)
{
	/* The reference judges memory by its CPU samples; a container whose memory alone is known
	 * never gets anywhere. */
	if (r == RESOURCE_CPU || k->profile == PROFILE_VPA)
		return confidence(
			u->cpu_first, u->cpu_last, u->cpu_minutes, k->confidence_interval_ns[r]);
	return confidence(u->memory_first, u->memory_last, (double)u->memory_minutes,
		k->confidence_interval_ns[r]);
}

static double multiplier(enum bound bound, double conf)
{
	double x;

	if (bound == BOUND_UPPER)
		return 1.0 + UPPER_MULTIPLIER / conf;
	/* Not pow(): it is not the same to the last bit everywhere. */
	x = 1.0 + LOWER_MULTIPLIER / conf;
	return 1.0 / (x * x);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t round_up(int64_t a, int64_t step)
{
	if (step <= 1 || a == 0)
		return a;
	return amount_from_double(ceil((double)a / (double)step) * (double)step);
}

/* As text with two decimals in the largest binary unit, read back: what the reference's deprecated
 * flag does. */
static int64_t humanize(int64_t bytes)
{
	double unit = 1;
	double hundredths;

	while (unit < 1024.0 * 1024 * 1024 * 1024 && (double)bytes >= unit * 1024)
		unit *= 1024;
	if (unit == 1)
		return bytes;
	hundredths = nearbyint((double)bytes / unit * 100);
	return amount_from_double(ceil(hundredths * unit / 100));
}

static int64_t output_rounding(const struct knobs *k, enum resource resource, int64_t amount)
{
	if (resource == RESOURCE_CPU) {
		amount = round_up(amount, k->round_cpu_millicores);
		return k->integer_cpu ? round_up(amount, 1000) : amount;
	}
	amount = round_up(amount, k->round_memory_bytes);
	return k->humanize_memory ? humanize(amount) : amount;
}

static int64_t learned_floor(const struct estimation *s, enum bound bound)
{
	if (bound == BOUND_LOWER)
		return s->lower_floor;
	/* The upper bound is no help below the target. */
	return s->target_floor;
}

/* From the percentile's amount to what is told. */
static int64_t one(const struct estimation *s, enum bound bound, enum resource r, int64_t amount)
{
	const struct knobs *k = s->k;
	int64_t before;
	double factor;

	explain(s, bound, r, EXPLAIN_PERCENTILE, k->percentile[bound][r], -1, amount);
	before = amount;
	amount += amount_scale(amount, k->margin_fraction);
	explain(s, bound, r, EXPLAIN_MARGIN, k->margin_fraction, before, amount);
	if (bound != BOUND_TARGET) {
		before = amount;
		factor = multiplier(bound, s->confidence[r]);
		amount = amount_scale(amount, factor);
		explain(s, bound, r, EXPLAIN_CONFIDENCE, factor, before, amount);
	}
	if (r == RESOURCE_MEMORY && s->target_floor > 0) {
		before = amount;
		amount = larger(amount, learned_floor(s, bound));
		explain(s, bound, r, EXPLAIN_OOM_FLOOR, NAN, before, amount);
	}
	before = amount;
	amount = larger(amount, s->minimum[r]);
	explain(s, bound, r, EXPLAIN_MINIMUM, NAN, before, amount);
	before = amount;
	amount = output_rounding(k, r, amount);
	if (amount != before)
		explain(s, bound, r, EXPLAIN_ROUNDING, NAN, before, amount);
	before = amount;
	if (k->max_allowed[r] > 0 && amount > k->max_allowed[r])
		amount = k->max_allowed[r];
	if (amount != before)
		explain(s, bound, r, EXPLAIN_MAXIMUM, NAN, before, amount);
	return amount;
}

static bool measured(const struct usage_history *u, enum resource r)
{
	return !histogram_empty(&u->histogram[r]);
}

/* Whether the amount is knowledge, or only what is left when nothing is known. */
static bool known(const struct estimation *s, enum bound bound, enum resource r, int64_t amount)
{
	if (s->k->profile == PROFILE_VPA)
		return true;
	if (!measured(s->u, r))
		return false;
	if (bound == BOUND_TARGET)
		return true;
	if (bound == BOUND_LOWER)
		return s->confidence[r] > 0 || (r == RESOURCE_MEMORY && s->lower_floor > 0);
	/* Beyond the last bucket's start: a number without meaning. */
	return s->confidence[r] > 0 &&
	       multiplier(BOUND_UPPER, s->confidence[r]) <= UPPER_FACTOR_MAX &&
	       (double)amount < s->u->model->buckets[r].from[s->u->model->buckets[r].n - 1];
}

static void set_minimum(struct estimation *s, unsigned int n_containers)
{
	const struct knobs *k = s->k;
	double fraction = 1.0 / (double)(n_containers > 0 ? n_containers : 1);
	/* Through cores and back, as the reference does: above 4000 some values lose one. */
	int64_t pod_cpu = amount_from_double(k->pod_min_cpu_millicores * 0.001 * 1000.0);
	int64_t pod_memory = amount_from_double(k->pod_min_memory_mb * 1024 * 1024);

	s->minimum[RESOURCE_CPU] =
		larger(amount_scale(pod_cpu, fraction), k->container_min[RESOURCE_CPU]);
	s->minimum[RESOURCE_MEMORY] =
		larger(amount_scale(pod_memory, fraction), k->container_min[RESOURCE_MEMORY]);
}

static void set_floor(struct estimation *s, int64_t now)
{
	const struct memory_floor *f = &s->u->floor;

	if (s->k->profile == PROFILE_VPA || f->at == TIME_NONE ||
		instant_since(now, f->at) > s->u->model->retention_ns)
		return;
	s->lower_floor = usage_above(s->u->model, f->used);
	s->target_floor = larger(usage_bump(s->k, f->used), s->lower_floor);
}

void estimate(const struct usage_history *u, const struct knobs *k, unsigned int n_containers,
	int64_t now, struct recommendation *ret, struct explain *ret_explain)
{
	struct estimation s = {.u = u, .k = k, .explain = ret_explain};
	struct recommendation result = {0};

	set_minimum(&s, n_containers);
	set_floor(&s, now);
	for (int r = 0; r < RESOURCES; r++)
		s.confidence[r] = confidence_of(u, k, (enum resource)r);
	if (ret_explain) {
		ret_explain->n = 0;
		for (int r = 0; r < RESOURCES; r++)
			ret_explain->confidence[r] = s.confidence[r];
	}
	for (int r = 0; r < RESOURCES; r++) {
		double p[BOUNDS];
		int64_t base[BOUNDS];

		for (int b = 0; b < BOUNDS; b++)
			p[b] = k->percentile[b][r];
		histogram_percentiles(&u->histogram[r], p, base, BOUNDS);
		for (int b = 0; b < BOUNDS; b++) {
			int64_t amount = one(&s, (enum bound)b, (enum resource)r, base[b]);

			if (!known(&s, (enum bound)b, (enum resource)r, amount))
				continue;
			result.amounts[b].value[r] = amount;
			result.amounts[b].known[r] = true;
		}
	}
	*ret = result;
}

bool estimate_ready(const struct usage_history *u)
{
	return u->cpu_samples >= 2 || u->oom_kills > 0;
}
