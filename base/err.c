/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <string.h>

#include "base/str.h"

int err_set(struct err *e, int code, const char *format, ...)
{
	if (e) {
		va_list ap;
		va_start(ap, format);
		(void)vsnprintf(e->text, sizeof(e->text), format, ap);
		va_end(ap);
		(void)str_printable(e->text);
	}
	return -code;
}

int err_wrap(struct err *e, int r, const char *format, ...)
{
	if (!e)
		return r;
	char inner[sizeof(e->text)];
	(void)snprintf(inner, sizeof(inner), "%s", err_text(e, r));

	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(e->text, sizeof(e->text), format, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->text))
		(void)snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", inner);
	(void)str_printable(e->text);
	return r;
}

const char *err_text(const struct err *e, int r)
{
	if (e && e->text[0])
		return e->text;
	return strerror(r < 0 ? -r : r);
}
