/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig files: YAML read by libyaml into its node tree, then looked up by name. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <yaml.h>

#include "base/file.h"
#include "base/macros.h"
#include "net/kube/config.h"
#include "net/kube/config_private.h"

struct reading {
	yaml_document_t *doc;
	struct kube_config *c;
	const char *dir;
	struct err *e;
};

static struct str scalar(const yaml_node_t *n)
{
	if (!n || n->type != YAML_SCALAR_NODE)
		return (struct str){NULL, 0};
	return (struct str){(const char *)n->data.scalar.value, n->data.scalar.length};
}

static yaml_node_t *member(const struct reading *r, const yaml_node_t *map, const char *name)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++)
		if (str_is(scalar(yaml_document_get_node(r->doc, p->key)), name))
			return yaml_document_get_node(r->doc, p->value);
	return NULL;
}

/* A member that says something: "", null and ~ are the same as its absence. */
static struct str text(const struct reading *r, const yaml_node_t *map, const char *name)
{
	struct str s = scalar(member(r, map, name));

	return str_is(s, "null") || str_is(s, "~") || s.n == 0 ? (struct str){NULL, 0} : s;
}

/* The body ("cluster", "user", "context") of the entry of that name in a list ("clusters"…). */
static yaml_node_t *named(
	const struct reading *r, const char *list, const char *body, struct str name)
{
	yaml_node_t *l = member(r, yaml_document_get_root_node(r->doc), list);

	if (!l || l->type != YAML_SEQUENCE_NODE)
		return NULL;
	for (yaml_node_item_t *i = l->data.sequence.items.start; i < l->data.sequence.items.top;
		i++) {
		yaml_node_t *entry = yaml_document_get_node(r->doc, *i);

		if (str_eq(scalar(member(r, entry, "name")), name))
			return member(r, entry, body);
	}
	return NULL;
}

static int no_memory(const struct reading *r)
{
	return err_set(r->e, ENOMEM, "out of memory");
}

static int copy(const struct reading *r, struct str s, char **ret)
{
	if (memchr(s.p, '\0', s.n))
		return err_set(r->e, EINVAL, "a value holds a NUL byte");
	*ret = str_dup(s);
	return *ret ? 0 : no_memory(r);
}

static int file_name(const struct reading *r, struct str s, char **ret)
{
	if (s.p[0] == '/')
		return copy(r, s, ret);
	if (memchr(s.p, '\0', s.n))
		return err_set(r->e, EINVAL, "a file name holds a NUL byte");
	if (asprintf(ret, "%s/%.*s", r->dir, STR_ARG(s)) >= 0)
		return 0;
	*ret = NULL;
	return no_memory(r);
}

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

int base64_decode(struct str s, struct buf *out)
{
	uint32_t bits = 0;
	unsigned int n = 0, padding = 0;

	for (size_t i = 0; i < s.n; i++) {
		int digit = base64_digit(s.p[i]);

		if (s.p[i] == '\n' || s.p[i] == '\r' || s.p[i] == ' ')
			continue;
		if (s.p[i] == '=') {
			padding++;
			continue;
		}
		if (digit < 0 || padding > 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)digit;
		if (++n % 4 != 0)
			continue;
		(void)buf_putc(out, (char)(bits >> 16));
		(void)buf_putc(out, (char)(bits >> 8));
		(void)buf_putc(out, (char)bits);
	}
	if (n % 4 == 1 || padding != (4 - n % 4) % 4)
		return -EINVAL;
	if (n % 4 >= 2)
		(void)buf_putc(out, (char)(bits >> (n % 4 == 2 ? 4 : 10)));
	if (n % 4 == 3)
		(void)buf_putc(out, (char)(bits >> 2));
	return out->error;
}

/* Decodes inline data into a sealed memfd; *ret names it as a path. */
static int inline_data(const struct reading *r, struct str s, const char *name, int *fd, char **ret)
{
	struct buf b = BUF_INIT(KUBECONFIG_MAX_BYTES);
	int error = base64_decode(s, &b);

	if (error == -EINVAL)
		(void)err_set(r->e, EINVAL, "%s is not base64", name);
	*fd = error < 0 ? -1 : memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (error == 0 && (*fd < 0 || (error = write_full(*fd, b.p, b.n)) < 0))
		error = err_set(r->e, error ? -error : errno, "%s: no memory file: %s", name,
			strerror(error ? -error : errno));
	if (b.p)
		explicit_bzero(b.p, b.n);
	buf_finish(&b);
	if (error < 0)
		return error;
	(void)fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	if (asprintf(ret, "/proc/self/fd/%d", *fd) >= 0)
		return 0;
	*ret = NULL;
	return no_memory(r);
}

/* "certificate-authority" and the like: inline wins, as everywhere. */
static int material(
	const struct reading *r, const yaml_node_t *map, const char *name, int *fd, char **ret)
{
	char data[48];
	struct str s;

	(void)snprintf(data, sizeof(data), "%s-data", name);
	s = text(r, map, data);
	if (s.p)
		return inline_data(r, s, data, fd, ret);
	s = text(r, map, name);
	return s.p ? file_name(r, s, ret) : 0;
}

static const struct refused {
	const char *member, *instead;
} refused_of_cluster[] =
	{
		{"insecure-skip-tls-verify",
			"the server could be anyone; give certificate-authority (and "
			"tls-server-name where its certificate has "
			"another name)"},
		{"proxy-url", "connections go straight to the server"},
},
  refused_of_user[] = {
	  {"exec", "programs are not run; give a token, a tokenFile or a client certificate"},
	  {"auth-provider", "give a token, a tokenFile or a client certificate"},
	  {"username",
		  "password login is gone from Kubernetes; give a token or a client certificate"},
	  {"as", "impersonation is not supported; use credentials of that user"},
	  {"as-uid", "impersonation is not supported; use credentials of that user"},
	  {"as-groups", "impersonation is not supported; use credentials of that user"},
	  {"as-user-extra", "impersonation is not supported; use credentials of that user"},
};

static int refuse(
	const struct reading *r, const yaml_node_t *map, const struct refused *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		yaml_node_t *m = member(r, map, list[i].member);
		struct str s = scalar(m);

		if (!m || (m->type == YAML_SCALAR_NODE &&
				  (!text(r, map, list[i].member).p || str_is(s, "false"))))
			continue;
		return err_set(
			r->e, ENOTSUP, "%s is not supported: %s", list[i].member, list[i].instead);
	}
	return 0;
}

static bool is_loopback(const char *host)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

/* Refuses what is no plain http(s) URL of a server, and a token that would travel in clear. */
static int check_server(const struct reading *r, const char *server)
{
	CURLU *u = curl_url();
	char *scheme = NULL, *host = NULL, *part = NULL;
	int error = 0;

	if (!u)
		return no_memory(r);
	if (curl_url_set(u, CURLUPART_URL, server, 0) ||
		curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
		curl_url_get(u, CURLUPART_HOST, &host, 0))
		error = err_set(r->e, EINVAL,
			"server \"%.100s\" is not a URL such as https://10.0.0.1:6443", server);
	else if (strcmp(scheme, "http") == 0 && !is_loopback(host))
		error = err_set(r->e, EINVAL,
			"server \"%.100s\": http is taken for a loopback address only; use https",
			server);
	else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		error = err_set(r->e, EINVAL, "server \"%.100s\": not https", server);
	else if (!curl_url_get(u, CURLUPART_USER, &part, 0) ||
		 !curl_url_get(u, CURLUPART_QUERY, &part, 0) ||
		 !curl_url_get(u, CURLUPART_FRAGMENT, &part, 0))
		error = err_set(r->e, EINVAL, "server URL with a user, a query or a fragment");
	curl_free(scheme);
	curl_free(host);
	curl_free(part);
	curl_url_cleanup(u);
	return error;
}

static int read_cluster(const struct reading *r, const yaml_node_t *cluster)
{
	struct str server = text(r, cluster, "server"), name = text(r, cluster, "tls-server-name");
	int error = refuse(r, cluster, refused_of_cluster, ARRAY_SIZE(refused_of_cluster));

	if (error < 0)
		return error;
	while (server.n > 0 && server.p[server.n - 1] == '/')
		server.n--;
	if (server.n == 0)
		return err_set(r->e, EINVAL, "the cluster has no server");
	error = copy(r, server, &r->c->server);
	if (error == 0)
		error = check_server(r, r->c->server);
	if (error == 0 && name.p)
		error = copy(r, name, &r->c->tls_server_name);
	if (error == 0)
		error = material(
			r, cluster, "certificate-authority", &r->c->memfds[0], &r->c->ca_file);
	return error;
}

static int read_user(const struct reading *r, const yaml_node_t *user)
{
	struct str token = text(r, user, "token"), token_file = text(r, user, "tokenFile");
	int error = refuse(r, user, refused_of_user, ARRAY_SIZE(refused_of_user));

	if (error == 0)
		error = material(r, user, "client-certificate", &r->c->memfds[1], &r->c->cert_file);
	if (error == 0)
		error = material(r, user, "client-key", &r->c->memfds[2], &r->c->key_file);
	if (error == 0 && !r->c->cert_file != !r->c->key_file)
		error = err_set(r->e, EINVAL, "the user has a client %s without its %s",
			r->c->cert_file ? "certificate" : "key",
			r->c->cert_file ? "key" : "certificate");
	/* As elsewhere, the file wins over the token beside it. */
	if (error == 0 && token_file.p)
		return file_name(r, token_file, &r->c->token_file);
	if (error == 0 && token.p) {
		if (kube_token_check(token) < 0)
			return err_set(r->e, EINVAL,
				"the user's token holds characters that no token has");
		error = copy(r, token, &r->c->token);
	}
	return error;
}

static int read_context(const struct reading *r)
{
	yaml_node_t *root = yaml_document_get_root_node(r->doc);
	struct str current = text(r, root, "current-context");
	yaml_node_t *context = named(r, "contexts", "context", current);
	struct str cluster_name, user_name;
	yaml_node_t *cluster, *user;
	int error;

	if (!root || root->type != YAML_MAPPING_NODE || !str_is(text(r, root, "kind"), "Config"))
		return err_set(r->e, EINVAL, "not a kubeconfig: no \"kind: Config\"");
	if (!current.p)
		return err_set(r->e, EINVAL,
			"no current-context; set one with: kubectl config use-context NAME");
	if (!context)
		return err_set(r->e, EINVAL, "current-context \"%.*s\" is not among the contexts",
			STR_ARG(current));
	cluster_name = text(r, context, "cluster");
	user_name = text(r, context, "user");
	cluster = named(r, "clusters", "cluster", cluster_name);
	user = named(r, "users", "user", user_name);
	if (!cluster)
		return err_set(r->e, EINVAL,
			"cluster \"%.*s\" of context \"%.*s\" is not among the clusters",
			STR_ARG(cluster_name), STR_ARG(current));
	if (!user && user_name.p)
		return err_set(r->e, EINVAL,
			"user \"%.*s\" of context \"%.*s\" is not among the users",
			STR_ARG(user_name), STR_ARG(current));
	error = read_cluster(r, cluster);
	return error < 0 || !user ? error : read_user(r, user);
}

int kube_config_parse(struct kube_config *ret_c, struct str bytes, const char *dir, struct err *e)
{
	_cleanup_(kube_config_finish)
	struct kube_config c;
	yaml_parser_t parser;
	yaml_document_t doc;
	int r;

	kube_config_init(&c);
	if (!yaml_parser_initialize(&parser))
		return err_set(e, ENOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)bytes.p, bytes.n);
	if (yaml_parser_load(&parser, &doc)) {
		struct reading reading = {.doc = &doc, .c = &c, .dir = dir, .e = e};

		r = read_context(&reading);
		yaml_document_delete(&doc);
	} else if (parser.error == YAML_MEMORY_ERROR) {
		r = err_set(e, ENOMEM, "out of memory");
	} else {
		r = err_set(e, EINVAL, "line %zu: not YAML: %s", parser.problem_mark.line + 1,
			parser.problem ? parser.problem : "unreadable");
	}
	yaml_parser_delete(&parser);
	if (r < 0)
		return r;
	*ret_c = c;
	kube_config_init(&c);
	return 0;
}

int kube_config_from_file(struct kube_config *ret_c, const char *path, struct err *e)
{
	struct buf b = BUF_INIT(KUBECONFIG_MAX_BYTES);
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *dir =
		slash ? str_dup((struct str){path, slash == path ? 1 : (size_t)(slash - path)})
		      : str_dup(STR("."));
	int r = dir ? file_read(AT_FDCWD, path, &b, e) : err_set(e, ENOMEM, "out of memory");

	if (r < 0)
		(void)err_wrap(e, r, "kubeconfig");
	if (r == 0) {
		r = kube_config_parse(ret_c, buf_str(&b), dir, e);
		if (r < 0)
			(void)err_wrap(e, r, "kubeconfig %s", path);
	}
	if (b.p)
		explicit_bzero(b.p, b.n);
	buf_finish(&b);
	return r;
}
