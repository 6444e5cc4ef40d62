/* SPDX-License-Identifier: Apache-2.0 */
/* Handing the state directory, which the kubelet makes as root's, over to the agent's group. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* Gives the directory the group and mode 2770, so that what is made in it belongs to the group as
 * well. Needs no capability: the caller owns the directory and is in the group. One that has group
 * and mode already is left as it is. -EBUSY: it holds something and belongs to another group, so it
 * may be someone else's; -ENOTDIR, -ELOOP: no directory, or a symbolic link; else what the kernel
 * said. Nothing is changed on failure. */
int prepare_state(const char *path, gid_t group, struct err *e);
