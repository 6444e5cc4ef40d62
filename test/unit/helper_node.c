// SPDX-License-Identifier: Apache-2.0
#include "test/unit/helper_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json_read.h"
#include "proto/json_write.h"

void fake_node_init(struct fake_node *f, const char *name)
{
	*f = (struct fake_node){.random = 88172645463325252};
	snprintf(f->name, sizeof f->name, "%s", name);
	snprintf(f->uid, sizeof f->uid, "uid-1");
	snprintf(f->machine_id, sizeof f->machine_id, "machine-1");
	buf_init(&f->body, 1024 * 1024);
}

void fake_node_finish(struct fake_node *f)
{
	while (f->n)
		fake_node_set(f, f->key[0], NULL);
	buf_finish(&f->body);
	free(f->last_patch);
}

static size_t find(const struct fake_node *f, const char *key)
{
	size_t i = 0;

	while (i < f->n && strcmp(f->key[i], key) != 0)
		i++;
	return i;
}

const char *fake_node_get(const struct fake_node *f, const char *key)
{
	size_t i = find(f, key);

	return i < f->n ? f->value[i] : NULL;
}

void fake_node_set(struct fake_node *f, const char *key, const char *value)
{
	size_t i = find(f, key);

	if (i < f->n) {
		char *old_key = f->key[i], *old_value = f->value[i];

		if (value) {
			f->value[i] = strdup(value);
		} else {
			f->n--;
			f->key[i] = f->key[f->n];
			f->value[i] = f->value[f->n];
			free(old_key);
		}
		free(old_value);
	} else if (value && f->n < FAKE_KEYS) {
		f->key[f->n] = strdup(key);
		f->value[f->n++] = strdup(value);
	}
}

static int start(void *arg, const struct kube_request *request, struct err *e)
{
	struct fake_node *f = arg;

	if (f->busy)
		abort(); /* one at a time */
	f->request = *request;
	f->busy = true;
	buf_clear(&f->body);
	buf_add(&f->body, request->body);
	if (request->method == KUBE_PATCH)
		f->patches++;
	else
		f->reads++;
	return 0;
}

static void cancel(void *arg)
{
	struct fake_node *f = arg;

	f->busy = false;
	f->cancelled = true;
}

struct publisher_port fake_node_port(struct fake_node *f)
{
	return (struct publisher_port){.start = start, .cancel = cancel, .arg = f};
}

static uint64_t chance(struct fake_node *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return f->random;
}

struct patching {
	struct fake_node *f;
	bool apply;
	bool poisoned;
	size_t size; /* of the annotations afterwards */
};

static int on_patch(void *arg, unsigned int id, const struct json_value *v)
{
	struct patching *p = arg;
	char *key = strndup(v->key.p, v->key.n);
	char *value = v->type == JSON_NULL ? NULL : strndup(v->text.p, v->text.n);
	const char *old = fake_node_get(p->f, key);

	if (old)
		p->size -= strlen(key) + strlen(old);
	if (value) {
		p->size += strlen(key) + strlen(value);
		p->poisoned |= p->f->poison && strcmp(key, p->f->poison) == 0;
	}
	if (p->apply)
		fake_node_set(p->f, key, value);
	free(key);
	free(value);
	return 0;
}

static bool patch(struct fake_node *f, bool apply, struct patching *p)
{
	static const struct json_path paths[] = {{"metadata.annotations.*", 0}};
	static const struct json_spec spec = {.paths = paths, .n_paths = 1, .value = on_patch};

	*p = (struct patching){.f = f, .apply = apply};
	for (size_t i = 0; i < f->n; i++)
		p->size += strlen(f->key[i]) + strlen(f->value[i]);
	return json_read(&spec, p, buf_str(&f->body), NULL) == 0;
}

static void write_node(const struct fake_node *f, struct buf *b)
{
	struct json_writer j = JSON_WRITER(b);

	json_begin_object(&j);
	json_key(&j, "kind");
	json_string(&j, "Node");
	json_key(&j, "metadata");
	json_begin_object(&j);
	json_key(&j, "name");
	json_string(&j, f->name);
	json_key(&j, "uid");
	json_string(&j, f->uid);
	json_key(&j, "annotations");
	json_begin_object(&j);
	for (size_t i = 0; i < f->n; i++) {
		json_key(&j, f->key[i]);
		json_string(&j, f->value[i]);
	}
	json_end_object(&j);
	json_end_object(&j);
	json_key(&j, "status");
	json_begin_object(&j);
	json_key(&j, "nodeInfo");
	json_begin_object(&j);
	json_key(&j, "machineID");
	json_string(&j, f->machine_id);
	json_key(&j, "bootID");
	json_string(&j, "boot-1");
	json_end_object(&j);
	json_end_object(&j);
	json_end_object(&j);
}

static void done(struct fake_node *f, int error, unsigned int status, const char *message)
{
	struct kube_answer a = {.error = error,
		.status = error ? 0 : status,
		.retry_after_usec = f->retry_after_usec,
		.text = message};

	snprintf(a.kube_status.message, sizeof a.kube_status.message, "%s", message);
	f->busy = false;
	f->request.done(f->request.arg, &a);
}

static void stream(struct fake_node *f, struct str all)
{
	while (all.n) {
		size_t n = 1 + chance(f) % 700;

		n = n < all.n ? n : all.n;
		if (f->request.data(f->request.arg, (struct str){all.p, n}) < 0)
			abort();
		all.p += n;
		all.n -= n;
	}
	done(f, 0, 200, "");
}

void fake_node_answer(struct fake_node *f)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4U * 1024 * 1024);
	struct patching p;

	if (f->error || f->status) {
		done(f, f->error, f->status, f->message ? f->message : "told to refuse");
		return;
	}
	if (f->broken_patches && f->request.method == KUBE_PATCH) {
		done(f, 0, 500, "told to break");
		return;
	}
	if (f->request.method == KUBE_PATCH) {
		if (!patch(f, false, &p)) {
			done(f, 0, 400, "not JSON");
			return;
		}
		if (p.poisoned) {
			done(f, 0, 422,
				"Node \"n\" is invalid: metadata.annotations: Invalid value");
			return;
		}
		if (f->limit && p.size > f->limit) {
			done(f, 0, 422,
				"Node \"n\" is invalid: metadata.annotations: Too long: must have "
				"at most 262144 bytes");
			return;
		}
		(void)patch(f, true, &p);
		f->taken++;
		free(f->last_patch);
		f->last_patch = strdup(f->body.p);
		if (f->lost) {
			done(f, f->lost, 0, "told to lose the answer");
			return;
		}
	}
	if (f->raw) {
		stream(f, str_of(f->raw));
		return;
	}
	write_node(f, &b);
	stream(f, buf_str(&b));
}
