/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

static struct {
	enum log_level level;
	enum log_format format;
	void (*sink)(const char *line, size_t n, void *arg);
	void *sink_arg;
} state = {.level = LOG_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_setup(enum log_level level, enum log_format format)
{
	state.level = level;
	state.format = format;
}

bool log_enabled(enum log_level level)
{
	return level <= state.level;
}

int log_level_parse(const char *name, enum log_level *ret_level)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++) {
		if (!strcmp(name, level_names[i])) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

void log_to(void (*sink)(const char *line, size_t n, void *arg), void *arg)
{
	state.sink = sink;
	state.sink_arg = arg;
}

/* True when the line may be written; *ret_left_out then tells how many before it were not. */
static bool site_allows(struct log_site *site, unsigned int *ret_left_out)
{
	uint64_t now = clock_mono_usec(&clock_system);

	*ret_left_out = 0;
	if (site->count == 0 || now - site->window_start_usec >= USEC_PER_MINUTE) {
		*ret_left_out = site->left_out;
		*site = (struct log_site){.window_start_usec = now};
	}
	if (site->count >= LOG_BURST) {
		site->left_out++;
		return false;
	}
	site->count++;
	return true;
}

/* A message may quote bytes from outside: whatever could end the line or the JSON string is
 * escaped. UTF-8 passes in text; in JSON every byte ≥ 0x80 passes too, since messages are cut at
 * character boundaries only by chance and readers of logs replace what is broken. */
static size_t escape(char *out, size_t size, const char *in, bool json)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (; *in && n + 7 < size; in++) {
		unsigned char c = (unsigned char)*in;
		if (json && (c == '"' || c == '\\')) {
			out[n++] = '\\';
			out[n++] = (char)c;
		} else if (c >= 0x20 && c != 0x7f) {
			out[n++] = (char)c;
		} else if (json) {
			memcpy(out + n, "\\u00", 4);
			out[n + 4] = hex[c >> 4];
			out[n + 5] = hex[c & 15];
			n += 6;
		} else {
			out[n++] = '\\';
			out[n++] = 'x';
			out[n++] = hex[c >> 4];
			out[n++] = hex[c & 15];
		}
	}
	out[n] = '\0';
	return n;
}

static void emit(enum log_level level, const char *message, unsigned int left_out)
{
	char escaped[LOG_LINE_MAX * 2];
	char when[40];
	char line[sizeof(escaped) + 160];
	bool json = state.format == LOG_JSON;
	int64_t wall_usec = clock_wall_usec(&clock_system);
	time_t seconds = (time_t)(wall_usec / (int64_t)USEC_PER_SEC);
	struct tm tm;
	int n;

	(void)escape(escaped, sizeof(escaped), message, json);
	if (!gmtime_r(&seconds, &tm) || !strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm))
		when[0] = '\0';
	int msec = (int)(wall_usec / 1000 % 1000);

	if (json && left_out)
		n = snprintf(line, sizeof(line),
			"{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"message\":\"%s\",\"suppressed\":"
			"%u}\n",
			when, msec, level_names[level], escaped, left_out);
	else if (json)
		n = snprintf(line, sizeof(line),
			"{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"message\":\"%s\"}\n", when, msec,
			level_names[level], escaped);
	else if (left_out)
		n = snprintf(line, sizeof(line),
			"%s.%03dZ %s: %s (%u more like it were not shown)\n", when, msec,
			level_names[level], escaped, left_out);
	else
		n = snprintf(line, sizeof(line), "%s.%03dZ %s: %s\n", when, msec,
			level_names[level], escaped);
	if (n < 0)
		return;
	size_t length = MIN((size_t)n, sizeof(line) - 1);
	if (state.sink)
		state.sink(line, length, state.sink_arg);
	else
		(void)fwrite(line, 1, length, stderr);
}

void log_at(struct log_site *site, enum log_level level, const char *format, ...)
{
	char message[LOG_LINE_MAX];
	unsigned int left_out;

	if (!site_allows(site, &left_out))
		return;
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(message))
		memcpy(message + sizeof(message) - 4, "…", 4);
	emit(level, message, left_out);
}
