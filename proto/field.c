// SPDX-License-Identifier: Apache-2.0
#include "proto/field.h"

#include <errno.h>

#include "base/num.h"
#include "proto/quantity.h"
#include "proto/rfc3339.h"

#define SHOWN_MAX 40U /* bytes of a wrong value that are shown */

/* For a message: what is not printable is shown as '?'. */
static void show(const struct json_value *v, char out[SHOWN_MAX + 8])
{
	static const char *const types[] = {
		[JSON_NULL] = "null",
		[JSON_BOOL] = "a boolean",
		[JSON_OBJECT] = "an object",
		[JSON_OBJECT_END] = "an object",
		[JSON_ARRAY] = "an array",
		[JSON_ARRAY_END] = "an array",
	};
	size_t n = MIN(v->text.n, (size_t)SHOWN_MAX);
	char quote = v->type == JSON_STRING ? '"' : ' ';
	char *p = out;

	if (v->type != JSON_STRING && v->type != JSON_NUMBER) {
		(void)snprintf(out, SHOWN_MAX + 8, "%s", types[v->type]);
		return;
	}
	if (quote == '"')
		*p++ = quote;
	for (size_t i = 0; i < n; i++)
		*p++ = v->text.p[i] >= 0x20 && v->text.p[i] < 0x7f ? v->text.p[i] : '?';
	if (n < v->text.n || v->cut) {
		memcpy(p, "…", 3);
		p += 3;
	}
	if (quote == '"')
		*p++ = quote;
	*p = '\0';
}

int field_wrong(const struct json_value *v, const char *what, const char *expected, struct err *e)
{
	char shown[SHOWN_MAX + 8];

	show(v, shown);
	return err_set(e, EINVAL, "%s is %s, expected %s", what, shown, expected);
}

bool field_is_text(struct str s, enum field_text text)
{
	if (text == FIELD_ANY)
		return s.n == 0 || !memchr(s.p, '\0', s.n);
	if (text == FIELD_NAME && (str_is(s, ".") || str_is(s, "..")))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
		bool printable = c >= 0x20 && c < 0x7f;
		if (text == FIELD_NAME ? !name : !printable)
			return false;
	}
	return true;
}

int field_string(const struct json_value *v, const char *what, char *out, size_t size,
	enum field_text text, struct err *e)
{
	static const char *const expected[] = {
		[FIELD_NAME] = "a name of letters, digits, '-', '.' and '_'",
		[FIELD_LINE] = "one line of ASCII",
		[FIELD_ANY] = "a string",
	};
	char longest[48];

	if (v->type == JSON_NULL)
		return 0;
	if (v->type != JSON_STRING || !field_is_text(v->text, text))
		return field_wrong(v, what, expected[text], e);
	if (v->cut || str_copy(out, size, v->text) < 0) {
		(void)snprintf(longest, sizeof longest, "at most %zu bytes", size - 1);
		return field_wrong(v, what, longest, e);
	}
	return 0;
}

int field_bool(const struct json_value *v, const char *what, bool *ret, struct err *e)
{
	if (v->type == JSON_NULL)
		return 0;
	if (v->type != JSON_BOOL)
		return field_wrong(v, what, "true or false", e);
	*ret = v->boolean;
	return 0;
}

int field_i64(const struct json_value *v, const char *what, int64_t *ret, struct err *e)
{
	if (v->type == JSON_NULL)
		return 0;
	if (v->type != JSON_NUMBER || parse_i64(v->text, ret) < 0)
		return field_wrong(v, what, "a whole number", e);
	return 0;
}

int field_time(const struct json_value *v, const char *what, int64_t *ret, struct err *e)
{
	if (v->type == JSON_NULL)
		return 0;
	int r = v->type == JSON_STRING ? rfc3339_parse(v->text, ret) : -EINVAL;
	if (r == -ERANGE)
		*ret = TIME_NONE;
	return r == -EINVAL ? field_wrong(v, what, "an RFC 3339 time", e) : 0;
}

static int field_quantity(const struct json_value *v, const char *what,
	int (*parse)(struct str, int64_t *), int64_t *ret, struct err *e)
{
	if (v->type == JSON_NULL)
		return 0;
	if ((v->type != JSON_STRING && v->type != JSON_NUMBER) || v->cut || parse(v->text, ret) < 0)
		return field_wrong(v, what, "a quantity, not negative", e);
	return 0;
}

int field_millicores(const struct json_value *v, const char *what, int64_t *ret, struct err *e)
{
	return field_quantity(v, what, quantity_parse_millicores, ret, e);
}

int field_bytes(const struct json_value *v, const char *what, int64_t *ret, struct err *e)
{
	return field_quantity(v, what, quantity_parse_bytes, ret, e);
}

int field_object(const struct json_value *v, const char *what, struct err *e)
{
	if (v->type == JSON_OBJECT || v->type == JSON_OBJECT_END || v->type == JSON_NULL)
		return 0;
	return field_wrong(v, what, "an object", e);
}
