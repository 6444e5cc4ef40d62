/* SPDX-License-Identifier: Apache-2.0 */
/* What the name of a cgroup directory says: kubelet's pod directories and the container runtimes'
 * leaves, in every form seen in the field. Pure. The forms (kubelet's systemd and cgroupfs drivers,
 * with or without a cgroup root; containerd, CRI-O, cri-dockerd; systemd paths that a misconfigured
 * runtime used as a plain name):
 *
 *     kubepods  kubepods.slice  kubelet-kubepods.slice              root of all pods
 *     burstable  besteffort  kubepods-burstable.slice               quality-of-service level
 *     pod<uid>  kubepods-burstable-pod<uid with _>.slice            pod
 *     <64 hex>  crio-<64 hex>  cri-containerd-<64 hex>.scope        container, or the pod's sandbox
 *     kubepods-…-pod<uid>.slice:cri-containerd:<64 hex>             both in one
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

#define POD_UID_LENGTH_MAX 63U
#define CONTAINER_ID_LENGTH 64U

enum cgname_kind {
	CGNAME_OTHER,
	CGNAME_KUBEPODS,
	CGNAME_QOS,
	CGNAME_POD,
	CGNAME_CONTAINER,     /* or a sandbox: only the pod's status tells them apart */
	CGNAME_POD_CONTAINER, /* uid and id in one misplaced name */
	CGNAME_MONITOR,       /* crio-conmon-…: CRI-O's helper, no container */
	CGNAME_KATA, /* kata_…: a virtual machine; its containers cannot be seen from here */
};

struct cgname {
	enum cgname_kind kind;
	struct str uid; /* as written in the name (a systemd name has _ for -); a view into it */
	struct str id;  /* 64 lower-case hexadecimal digits */
};

/* Looks at one path component. Never fails: what is nothing of ours is CGNAME_OTHER. */
struct cgname cgname_parse(struct str name);

/* Compares a UID written in a name with one of the API. */
bool pod_uid_same(struct str a, struct str b);
/* A UUID, or the 32 hexadecimal digits of a static pod. */
bool pod_uid_plausible(struct str uid);
/* Static pods have a hash for a UID; no DaemonSet's pod does. */
bool pod_uid_is_static(struct str uid);

/* "containerd://<64 hex>" of a pod's status → the id; empty (p NULL) for anything else. */
struct str container_id_of_status(struct str container_id);
