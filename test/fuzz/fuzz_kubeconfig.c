/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig files: what is accepted has a server, and no token that could forge a header. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/kube/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kube_config c;

	if (kube_config_parse(&c, (struct str){(const char *)data, size}, "/dir", NULL) < 0)
		return 0;
	if (!c.server || strncasecmp(c.server, "http", 4) != 0 || !c.cert_file != !c.key_file)
		abort();
	for (const char *p = c.token ? c.token : ""; *p; p++)
		if (*p <= ' ' || *p > '~')
			abort();
	kube_config_finish(&c);
	return 0;
}
