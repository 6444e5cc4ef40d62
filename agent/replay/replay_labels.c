// SPDX-License-Identifier: Apache-2.0
#include "agent/replay/replay_labels.h"

#include <errno.h>
#include <string.h>

void labels_init(struct labels *l)
{
	buf_init(&l->text, LABELS_TEXT_MAX);
	l->n = 0;
}

void labels_finish(struct labels *l)
{
	buf_finish(&l->text);
}

void labels_clear(struct labels *l)
{
	buf_clear(&l->text);
	l->n = 0;
}

int labels_add(struct labels *l, struct str name, struct str value)
{
	if (str_is(name, "__name__"))
		return 0;
	if ((name.n && memchr(name.p, '\0', name.n)) || (value.n && memchr(value.p, '\0', value.n)))
		return -EINVAL;
	if (l->n == LABELS_MAX)
		return -E2BIG;
	struct label *label = &l->label[l->n];
	label->name = l->text.n;
	(void)buf_add(&l->text, name);
	(void)buf_putc(&l->text, '\0');
	label->value = l->text.n;
	(void)buf_add(&l->text, value);
	(void)buf_putc(&l->text, '\0');
	if (l->text.error)
		return l->text.error == -ENOMEM ? -ENOMEM : -E2BIG;
	l->n++;
	return 0;
}

static const char *find(const struct labels *l, struct str name)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_is(name, l->text.p + l->label[i].name))
			return l->text.p + l->label[i].value;
	return NULL;
}

int labels_canonical(struct labels *l, struct buf *out)
{
	/* A handful: insertion sort. */
	for (size_t i = 1; i < l->n; i++)
		for (size_t k = i; k > 0; k--) {
			struct label *a = &l->label[k - 1], *b = &l->label[k];
			if (strcmp(l->text.p + a->name, l->text.p + b->name) <= 0)
				break;
			struct label swap = *a;
			*a = *b;
			*b = swap;
		}
	for (size_t i = 0; i < l->n; i++) {
		(void)buf_puts(out, l->text.p + l->label[i].name);
		(void)buf_putc(out, '\0');
		(void)buf_puts(out, l->text.p + l->label[i].value);
		(void)buf_putc(out, '\0');
	}
	return out->error;
}

/* What is there, for the one who misses a label. */
static int missing(const struct labels *l, struct str name, struct err *e)
{
	_cleanup_buf_ struct buf have = BUF_INIT(160);

	for (size_t i = 0; i < l->n && !have.error; i++)
		(void)buf_printf(&have, "%s%s", i ? ", " : "", l->text.p + l->label[i].name);
	return err_set(e, EINVAL,
		"a series has no label \"%.*s\", which --series-name asks for; it has: %s",
		STR_ARG(name), have.n ? have.p : "none");
}

int labels_fill(const struct labels *l, const char *text, struct buf *out, struct err *e)
{
	for (const char *p = text; *p; p++) {
		if (*p != '{' && *p != '}') {
			(void)buf_putc(out, *p);
			continue;
		}
		if (p[1] == *p) {
			(void)buf_putc(out, *p++);
			continue;
		}
		size_t n = *p == '{' ? strcspn(p + 1, "{}") : 0;
		if (n == 0 || p[1 + n] != '}')
			return err_set(e, EINVAL,
				"--series-name is \"%s\", expected text with label names in "
				"braces: {namespace}/{container}@{node}",
				text);
		struct str name = {p + 1, n};
		const char *value = l ? find(l, name) : "";
		if (!value)
			return missing(l, name, e);
		(void)buf_puts(out, value);
		p += n + 1;
	}
	return out->error;
}
