/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/endpoint/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/endpoint/endpoint_write.h"
#include "base/num.h"

#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics {
	const struct agent_view *view;
	enum metrics_detail detail;
	bool open; /* OpenMetrics */
	struct buf *out;
	const struct metric_family *const *table;
	const struct metric_family *family;
	bool headed;       /* HELP and TYPE of the family are out */
	bool any_workload; /* the names below are the last one done */
	bool over;
	char namespace[LABEL_MAX_BYTES], daemonset[NAME_MAX_BYTES], container[LABEL_MAX_BYTES];
};

const struct agent_view *metrics_view(const struct metrics *m)
{
	return m->view;
}

/* ---- text ---- */

/* A label's value: backslash, quote and line end are escaped, what is no UTF-8 is replaced. */
static void put_label_value(struct buf *out, const char *value)
{
	_cleanup_buf_ struct buf clean = BUF_INIT(6 * strlen(value) + 1);

	json_escape(&clean, str_of(value));
	if (clean.error)
		out->error = out->error ? out->error : clean.error;
	for (size_t i = 0; i < clean.n; i++) {
		if (clean.p[i] != '\\') {
			(void)buf_putc(out, clean.p[i]);
			continue;
		}
		switch (clean.p[++i]) {
		case '"':
		case '\\':
		case 'n':
			(void)buf_putc(out, '\\');
			(void)buf_putc(out, clean.p[i]);
			break;
		case 'u':
			i += 4;
			__attribute__((fallthrough));
		default: /* other control characters have no escape there */
			(void)buf_puts(out, "\xef\xbf\xbd");
		}
	}
}

struct label {
	const char *name, *value;
};

static void put_series(struct metrics *m, const struct label *labels, unsigned int n, double value)
{
	static const char *const suffixes[] = {
		[METRIC_COUNTER] = "_total", [METRIC_GAUGE] = "", [METRIC_INFO] = "_info"};
	const struct metric_family *f = m->family;
	char text[32];

	if (isnan(value))
		return;
	(void)buf_printf(m->out, METRICS_PREFIX "%s%s", f->name, suffixes[f->type]);
	for (unsigned int i = 0; i < n; i++) {
		(void)buf_printf(m->out, "%s%s=\"", i ? "," : "{", labels[i].name);
		put_label_value(m->out, labels[i].value);
		(void)buf_putc(m->out, '"');
	}
	if (isinf(value))
		(void)snprintf(text, sizeof(text), "%sInf", value > 0 ? "+" : "-");
	else
		(void)format_double(value, text);
	(void)buf_printf(m->out, "%s %s\n", n ? "}" : "", text);
}

void metric_put(struct metrics *m, double value)
{
	put_series(m, NULL, 0, value);
}

void metric_put1(struct metrics *m, const char *label, const char *label_value, double value)
{
	const struct label l = {label, label_value};

	put_series(m, &l, 1, value);
}

void metric_put2(struct metrics *m, const char *label, const char *label_value, const char *label2,
	const char *label2_value, double value)
{
	const struct label l[] = {{label, label_value}, {label2, label2_value}};

	put_series(m, l, 2, value);
}

void metric_put_workload(struct metrics *m, const struct workload *w, const char *label,
	const char *label_value, double value)
{
	const struct label l[] = {{"namespace", w->namespace}, {"daemonset", w->daemonset},
		{"container", w->container}, {label, label_value}};

	put_series(m, l, label ? 4 : 3, value);
}

/* OpenMetrics names the family, Prometheus text the series. */
static void put_head(struct metrics *m)
{
	static const char *const open_types[] = {
		[METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_INFO] = "info"};
	static const char *const plain_types[] = {
		[METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_INFO] = "gauge"};
	static const char *const plain_suffixes[] = {
		[METRIC_COUNTER] = "_total", [METRIC_GAUGE] = "", [METRIC_INFO] = "_info"};
	const struct metric_family *f = m->family;
	const char *suffix = m->open ? "" : plain_suffixes[f->type];

	(void)buf_printf(m->out, "# HELP " METRICS_PREFIX "%s%s %s\n", f->name, suffix, f->help);
	(void)buf_printf(m->out, "# TYPE " METRICS_PREFIX "%s%s %s\n", f->name, suffix,
		(m->open ? open_types : plain_types)[f->type]);
	if (m->open && f->unit[0])
		(void)buf_printf(m->out, "# UNIT " METRICS_PREFIX "%s %s\n", f->name, f->unit);
}

/* ---- the scrape ---- */

static bool full(const struct metrics *m)
{
	return m->out->n >= ENDPOINT_PIECE_BYTES || m->out->error;
}

static void next_family(struct metrics *m)
{
	m->family++;
	m->headed = m->any_workload = false;
	if (m->family->name)
		return;
	m->table++;
	if (*m->table)
		m->family = *m->table;
	else
		m->over = true;
}

/* True when all workloads are done. */
static bool workloads_piece(struct metrics *m)
{
	const struct workload *w = m->view->workloads->first;

	if (m->any_workload)
		w = endpoint_after(m->view->workloads, m->namespace, m->daemonset, m->container);
	for (; w; w = w->next) {
		m->family->workload(m, w);
		if (!full(m))
			continue;
		m->any_workload = true;
		memcpy(m->namespace, w->namespace, sizeof(m->namespace));
		memcpy(m->daemonset, w->daemonset, sizeof(m->daemonset));
		memcpy(m->container, w->container, sizeof(m->container));
		return false;
	}
	return true;
}

static int metrics_next(void *state, struct buf *out)
{
	struct metrics *m = state;

	m->out = out;
	while (!m->over && !full(m)) {
		if (m->family->full && m->detail != METRICS_FULL) {
			next_family(m);
			continue;
		}
		if (!m->headed)
			put_head(m);
		m->headed = true;
		if (m->family->agent)
			m->family->agent(m);
		if (!m->family->workload || workloads_piece(m))
			next_family(m);
	}
	if (m->over && m->open)
		(void)buf_puts(out, "# EOF\n");
	return out->error ? out->error : !m->over;
}

int metrics_start(const struct agent_view *view, enum metrics_detail detail, const char *accept,
	struct http_response *response)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->view = view;
	m->detail = detail;
	m->open = metrics_wants_openmetrics(accept);
	m->table = metric_tables;
	m->family = *m->table;
	response->content_type = m->open ? OPENMETRICS_TYPE : PROMETHEUS_TYPE;
	response->producer.next = metrics_next;
	response->producer.finish = free;
	response->producer.state = m;
	return 0;
}

/* ---- Accept ---- */

/* The weight of one element of Accept ("type/subtype;q=0.5;…"), and its type. */
static double accept_weight(struct str element, struct str *ret_type)
{
	double q = 1;

	*ret_type = str_trim(str_cut(&element, ';'));
	while (element.p) {
		struct str parameter = str_trim(str_cut(&element, ';'));
		struct str name = str_trim(str_cut(&parameter, '='));

		if (str_is(name, "q") && parse_double(str_trim(parameter), &q) < 0)
			q = 0;
	}
	return q;
}

bool metrics_wants_openmetrics(const char *accept)
{
	struct str rest = str_of(accept);
	double open = 0, plain = 0;

	while (rest.p && rest.n) {
		struct str type, element = str_cut(&rest, ',');
		double q = accept_weight(element, &type);

		if (str_is(type, "application/openmetrics-text"))
			open = MAX(open, q);
		else if (str_is(type, "text/plain"))
			plain = MAX(plain, q);
	}
	return open > 0 && open >= plain;
}
