// SPDX-License-Identifier: Apache-2.0
#include "instruction.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CPU_MILLICORES_MAX 64000
#define BYTES_MAX (UINT64_C(1) << 40)
#define MSEC_MAX (UINT64_C(24) * 3600 * 1000)

struct unit {
	const char *suffix;
	uint64_t factor;
};

static const struct unit cpu_units[] = {{"m", 1}, {"", 1000}, {NULL, 0}};
static const struct unit byte_units[] = {
	{"Ki", 1 << 10},
	{"Mi", 1 << 20},
	{"Gi", 1 << 30},
	{"k", 1000},
	{"M", 1000000},
	{"", 1},
	{NULL, 0},
};
static const struct unit time_units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {NULL, 0}};
static const struct unit plain_units[] = {{"", 1}, {NULL, 0}};

static bool same(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* A decimal number with one of the units behind it; a fraction counts as far as the unit can show
 * it. */
static bool parse_number(
	const char *text, size_t length, const struct unit *units, uint64_t max, uint64_t *ret)
{
	uint64_t whole = 0, fraction = 0, scale = 1;
	size_t i = 0;

	for (; i < length && text[i] >= '0' && text[i] <= '9'; i++) {
		whole = whole * 10 + (uint64_t)(text[i] - '0');
		if (whole > BYTES_MAX)
			return false;
	}
	if (i == 0)
		return false;
	if (i < length && text[i] == '.') {
		for (i++; i < length && text[i] >= '0' && text[i] <= '9' && scale < 1000000; i++) {
			fraction = fraction * 10 + (uint64_t)(text[i] - '0');
			scale *= 10;
		}
	}
	for (; units->suffix; units++) {
		if (!same(text + i, length - i, units->suffix))
			continue;
		if (whole > max / units->factor)
			return false;
		*ret = whole * units->factor + fraction * units->factor / scale;
		return *ret <= max;
	}
	return false;
}

/* HEIGHT/ON/EVERY */
static bool parse_pulse(
	const char *text, size_t length, const struct unit *units, uint64_t max, struct pulse *ret)
{
	const char *on = memchr(text, '/', length);
	const char *every = on ? memchr(on + 1, '/', length - (size_t)(on + 1 - text)) : NULL;
	const char *end = text + length;
	struct pulse pulse;

	if (!every)
		return false;
	if (!parse_number(text, (size_t)(on - text), units, max, &pulse.height) ||
		!parse_number(
			on + 1, (size_t)(every - on - 1), time_units, MSEC_MAX, &pulse.on_msec) ||
		!parse_number(every + 1, (size_t)(end - every - 1), time_units, MSEC_MAX,
			&pulse.every_msec))
		return false;
	if (pulse.on_msec > pulse.every_msec || pulse.every_msec == 0)
		return false;
	*ret = pulse;
	return true;
}

/* One word; returns what was expected instead when it is wrong. */
static const char *parse_word(const char *name, size_t name_length, const char *value,
	size_t length, struct instruction *to)
{
	const struct {
		const char *name;
		const struct unit *units;
		uint64_t max;
		uint64_t *to;
		const char *expected;
	} numbers[] = {
		{"cpu", cpu_units, CPU_MILLICORES_MAX, &to->cpu_millicores,
			"CPU such as 200m or 0.2"},
		{"memory", byte_units, BYTES_MAX, &to->memory_bytes, "a size such as 64Mi"},
		{"leak", byte_units, BYTES_MAX, &to->leak_bytes_per_sec,
			"a size per second such as 512Ki"},
		{"cache", byte_units, BYTES_MAX, &to->cache_bytes, "a size such as 64Mi"},
		{"children", plain_units, INSTRUCTION_CHILDREN_MAX, &to->children,
			"a number up to 64"},
		{"child-cpu", cpu_units, CPU_MILLICORES_MAX, &to->child_cpu_millicores,
			"CPU such as 20m"},
		{"child-memory", byte_units, BYTES_MAX, &to->child_memory_bytes,
			"a size such as 4Mi"},
	};
	uint64_t status;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (same(name, name_length, numbers[i].name))
			return parse_number(value, length, numbers[i].units, numbers[i].max,
				       numbers[i].to)
				       ? NULL
				       : numbers[i].expected;
	if (same(name, name_length, "burst"))
		return parse_pulse(value, length, cpu_units, CPU_MILLICORES_MAX, &to->burst)
			       ? NULL
			       : "CPU/ON/EVERY such as 800m/200ms/5s, ON at most EVERY";
	if (same(name, name_length, "spike"))
		return parse_pulse(value, length, byte_units, BYTES_MAX, &to->spike)
			       ? NULL
			       : "SIZE/ON/EVERY such as 96Mi/1s/10s, ON at most EVERY";
	if (same(name, name_length, "exit")) {
		if (!parse_number(value, length, plain_units, 255, &status))
			return "a status up to 255";
		to->exit_status = (int)status;
		return NULL;
	}
	return "one of cpu, memory, leak, burst, spike, cache, children, child-cpu, child-memory, "
	       "exit";
}

int instruction_parse(const char *text, size_t length, struct instruction *ret_instruction,
	char *why, size_t why_size)
{
	static const char separators[] = " \t\r\n,&";
	struct instruction instruction = {.exit_status = -1};

	for (size_t i = 0; i < length;) {
		const char *word = text + i, *equals, *expected;
		size_t size = 0;

		while (i + size < length && !memchr(separators, word[size], sizeof(separators) - 1))
			size++;
		i += size ? size : 1;
		if (size == 0)
			continue;
		equals = memchr(word, '=', size);
		expected = equals ? parse_word(word, (size_t)(equals - word), equals + 1,
					    size - (size_t)(equals + 1 - word), &instruction)
				  : "NAME=VALUE";
		if (expected) {
			snprintf(why, why_size, "%.*s: expected %s", (int)(size < 80 ? size : 80),
				word, expected);
			return -1;
		}
	}
	*ret_instruction = instruction;
	return 0;
}

uint64_t pulse_height(const struct pulse *pulse, uint64_t base, uint64_t at_msec)
{
	if (pulse->height == 0 || at_msec % pulse->every_msec >= pulse->on_msec)
		return base;
	return pulse->height;
}
