/* SPDX-License-Identifier: Apache-2.0 */
/* Where the API server is and who we are to it: from the pod's own service account, or from a
 * kubeconfig file. Key material that came inline lives in sealed memfds and is named by
 * /proc/self/fd/N, because a path is the one form that every TLS build of curl takes. Files are
 * named, not read: curl opens them for each new connection, so certificates rotate by themselves.
 * The bearer token is the exception and is kept here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#define KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
#define KUBE_TOKEN_MAX_BYTES 16384U
#define KUBECONFIG_MAX_BYTES (1024U * 1024U)
/* A projected token is read again when the copy is this old: the kubelet renews it well before it
 * expires. */
#define KUBE_TOKEN_AGE_USEC (60 * USEC_PER_SEC)

struct kube_config {
	char *server; /* "https://10.96.0.1:443" or "https://[fd00::1]:6443/prefix"; no trailing
			 slash */
	char *tls_server_name; /* the name the certificate is checked against; NULL: the host of
				  server */
	char *ca_file;         /* NULL: the certificate authorities of the machine */
	char *cert_file;       /* with key_file, or both NULL */
	char *key_file;
	char *token_file; /* NULL: token is all there is, or there is none */
	char *token;      /* NULL: none (or not yet read) */
	uint64_t token_read_usec;
	bool token_stale;       /* the server refused it: read again before the next use */
	struct err token_error; /* why the last reading of token_file failed; empty: it did not */
	int memfds[3];
};

/* All NULL, nothing to free. */
void kube_config_init(struct kube_config *c);
/* Frees everything and wipes the token. */
void kube_config_finish(struct kube_config *c);

/* The pod's own: KUBERNETES_SERVICE_HOST (IPv4, IPv6 or a name) and KUBERNETES_SERVICE_PORT looked
 * up in environment (the process's, or a test's), ca.crt and token in dir
 * (KUBE_SERVICE_ACCOUNT_DIR). c is initialised here and untouched on failure. -ENOENT: not in a
 * pod, or no service account is mounted; -EINVAL: a value that cannot be used. */
int kube_config_from_pod(
	struct kube_config *ret_c, char *const *environment, const char *dir, struct err *e);

/* The current context of a kubeconfig file (YAML or JSON). Understood: server, tls-server-name,
 * certificate-authority, client-certificate, client-key (each as file, relative to the kubeconfig,
 * or inline as …-data), token, tokenFile. Whatever else would change how to connect or who we are
 * (exec, auth-provider, proxy-url, username, as, insecure-skip-tls-verify…) is refused by name,
 * with what to use in its place: -ENOTSUP. -EINVAL: not a usable kubeconfig. Plain http is taken
 * for a loopback address only. */
int kube_config_from_file(struct kube_config *ret_c, const char *path, struct err *e);
/* The same from bytes; dir is what relative paths are relative to. Opens no file but memfds. */
int kube_config_parse(struct kube_config *ret_c, struct str text, const char *dir, struct err *e);

/* The bearer token to send now, or NULL when there is none. Reads the token file again when the
 * copy is older than KUBE_TOKEN_AGE_USEC or was refused; a reading that fails keeps the old copy
 * and says why in token_error. Valid until the next call. */
const char *kube_config_token(struct kube_config *c, uint64_t now_usec);
/* The server answered 401. */
void kube_config_token_refused(struct kube_config *c);
