/* SPDX-License-Identifier: Apache-2.0 */
/* What this process costs, as the kernel says. NAN where that cannot be read. */
#pragma once

double process_cpu_seconds(void); /* user and system, since the start */
double process_resident_bytes(void);
double process_open_fds(void);
