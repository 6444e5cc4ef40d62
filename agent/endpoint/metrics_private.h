/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that make up metric_tables. Private to agent/endpoint/metrics*.c. */
#pragma once

#include "agent/endpoint/metrics.h"

extern const struct metric_family metrics_of_agent[];
extern const struct metric_family metrics_of_publisher[];
extern const struct metric_family metrics_of_kube[];
extern const struct metric_family metrics_of_containers[];
