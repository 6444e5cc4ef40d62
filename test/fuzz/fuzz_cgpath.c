/* SPDX-License-Identifier: Apache-2.0 */
/* Names of cgroup directories: what is cut out of one lies inside it and has its form. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/cgroup/cgpath.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_inside(struct str part, struct str whole)
{
	if (part.p && (part.p < whole.p || part.p + part.n > whole.p + whole.n))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str name = {(const char *)data, size};
	struct cgname c = cgname_parse(name);
	struct str id = container_id_of_status(name);

	must_be_inside(c.uid, name);
	must_be_inside(c.id, name);
	must_be_inside(id, name);
	if (c.kind == CGNAME_POD && (!c.uid.n || c.uid.n > POD_UID_LENGTH_MAX))
		abort();
	if (c.kind == CGNAME_CONTAINER && c.id.n != CONTAINER_ID_LENGTH)
		abort();
	if (c.kind == CGNAME_POD_CONTAINER && (!c.uid.p || !c.id.p))
		abort();
	(void)pod_uid_plausible(name);
	if (size && !pod_uid_same(name, name))
		abort();
	return 0;
}
