/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kube/config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/num.h"
#include "net/kube/config_private.h"

void kube_config_init(struct kube_config *c)
{
	*c = (struct kube_config){.memfds = {-1, -1, -1}};
}

static void wipe(char **secret)
{
	if (*secret)
		explicit_bzero(*secret, strlen(*secret));
	free(TAKE_PTR(*secret));
}

void kube_config_finish(struct kube_config *c)
{
	free(c->server);
	free(c->tls_server_name);
	free(c->ca_file);
	free(c->cert_file);
	free(c->key_file);
	free(c->token_file);
	wipe(&c->token);
	for (size_t i = 0; i < ARRAY_SIZE(c->memfds); i++)
		if (c->memfds[i] >= 0)
			(void)close(c->memfds[i]);
	kube_config_init(c);
}

/* A token goes into a header line, so that anything but visible ASCII would be a way to forge one.
 */
int kube_token_check(struct str token)
{
	if (token.n == 0 || token.n > KUBE_TOKEN_MAX_BYTES)
		return -EINVAL;
	for (size_t i = 0; i < token.n; i++)
		if (token.p[i] <= ' ' || token.p[i] > '~')
			return -EINVAL;
	return 0;
}

static int read_token(struct kube_config *c, struct err *e)
{
	struct buf b = BUF_INIT(KUBE_TOKEN_MAX_BYTES);
	int r = file_read(AT_FDCWD, c->token_file, &b, e);

	if (r == 0) {
		struct str token = str_trim(buf_str(&b));
		char *copy = NULL;

		r = kube_token_check(token);
		if (r < 0)
			(void)err_set(e, EINVAL, "token file %s: %s", c->token_file,
				token.n == 0 ? "it is empty"
					     : "it holds something that is no token");
		else if (!(copy = str_dup(token)))
			r = err_set(e, ENOMEM, "token file %s: out of memory", c->token_file);
		if (copy) {
			wipe(&c->token);
			c->token = copy;
		}
	} else {
		(void)err_wrap(e, r, "token file");
	}
	if (b.p)
		explicit_bzero(b.p, b.n);
	buf_finish(&b);
	return r;
}

const char *kube_config_token(struct kube_config *c, uint64_t now_usec)
{
	bool old =
		!c->token || c->token_stale || now_usec - c->token_read_usec >= KUBE_TOKEN_AGE_USEC;

	if (c->token_file && old) {
		c->token_error.text[0] = '\0';
		if (read_token(c, &c->token_error) == 0) {
			c->token_read_usec = now_usec;
			c->token_stale = false;
		}
	}
	return c->token;
}

void kube_config_token_refused(struct kube_config *c)
{
	c->token_stale = true;
}

static struct str lookup(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; environment && environment[i]; i++)
		if (strncmp(environment[i], name, n) == 0 && environment[i][n] == '=')
			return str_of(environment[i] + n + 1);
	return (struct str){NULL, 0};
}

/* Only what can stand in an address or a name: the rest could turn the URL into another one. */
static bool is_host(struct str s)
{
	static const char more[] = {'.', '-', ':', '_'};

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
			!memchr(more, c, sizeof(more)))
			return false;
	}
	return s.n > 0 && s.n <= 253;
}

static int pod_server(struct kube_config *c, char *const *environment, struct err *e)
{
	struct str host = lookup(environment, "KUBERNETES_SERVICE_HOST");
	struct str port = lookup(environment, "KUBERNETES_SERVICE_PORT");
	bool v6 = host.n > 0 && memchr(host.p, ':', host.n);
	uint64_t number;

	if (host.n == 0 || port.n == 0)
		return err_set(e, ENOENT,
			"not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
			"set; "
			"outside of a cluster give --kubeconfig=FILE");
	if (!is_host(host))
		return err_set(e, EINVAL,
			"KUBERNETES_SERVICE_HOST=\"%.*s\" is neither an address nor a name",
			STR_ARG(host));
	if (parse_u64(port, &number) < 0 || number == 0 || number > UINT16_MAX)
		return err_set(e, EINVAL,
			"KUBERNETES_SERVICE_PORT=\"%.*s\" is not a port from 1 to 65535",
			STR_ARG(port));
	if (asprintf(&c->server, v6 ? "https://[%.*s]:%u" : "https://%.*s:%u", STR_ARG(host),
		    (unsigned int)number) < 0) {
		c->server = NULL;
		return err_set(e, ENOMEM, "out of memory");
	}
	return 0;
}

static char *in_dir(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

int kube_config_from_pod(
	struct kube_config *ret_c, char *const *environment, const char *dir, struct err *e)
{
	_cleanup_(kube_config_finish)
	struct kube_config c;
	int r;

	kube_config_init(&c);
	r = pod_server(&c, environment, e);
	if (r < 0)
		return r;
	c.ca_file = in_dir(dir, "ca.crt");
	c.token_file = in_dir(dir, "token");
	if (!c.ca_file || !c.token_file)
		return err_set(e, ENOMEM, "out of memory");
	if (access(c.ca_file, R_OK) < 0)
		return err_set(e, errno,
			"%s: %s; the pod needs its service account mounted "
			"(automountServiceAccountToken: true)",
			c.ca_file, strerror(errno));
	r = read_token(&c, e);
	if (r < 0)
		return r;
	c.token_stale = true; /* there is no clock here to tell how old it is */
	*ret_c = c;
	kube_config_init(&c);
	return 0;
}
