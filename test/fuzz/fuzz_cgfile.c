/* SPDX-License-Identifier: Apache-2.0 */
/* Every parser of kernel files on the same text. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/cgroup/cgfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	struct cpu_stat cpu = {0};
	struct memory_stat memory = {0};
	struct memory_events events = {0};
	struct cpu_max cpu_max = {0};
	struct psi psi = {0};
	uint64_t number;
	bool populated;

	(void)cgfile_cpu_stat(text, &cpu);
	if (cgfile_memory_stat(text, &memory) == 0)
		(void)memory_stat_unreclaimable(&memory, memory.shmem_bytes, &number);
	(void)cgfile_memory_events(text, &events);
	(void)cgfile_number(text, &number);
	if (cgfile_cpu_max(text, &cpu_max) == 0)
		(void)cpu_max_millicores(&cpu_max);
	if (cgfile_psi(text, &psi) == 0 && psi.some.avg10_centipercent > 10099)
		abort();
	(void)cgfile_populated(text, &populated);
	(void)cgfile_has_controller(text, "memory");
	return 0;
}
