// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded into a User Mode Linux kernel on processors with more register state than it knows.
 *
 * Linux 6.1's User Mode Linux keeps 2696 bytes of a guest thread's extended state (up to AVX-512
 * and PKRU). A host whose processor has AMX insists, in PTRACE_SETREGSET, on the whole standard
 * XSAVE area (11008 bytes) and refuses the shorter one, which ends the guest's first process. Here
 * the missing tail is added in its initial state: no guest can use those registers, since asking
 * for them is a system call that its kernel does not have.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define XSTATE_BV_OFFSET 512 /* XSAVE header, Intel SDM vol. 1, 13.4.2 */
#define AREA_MAX_BYTES (64 * 1024)

/* State components with number <= 9 (PKRU) lie within what the guest kernel keeps. */
#define KNOWN_COMPONENTS ((UINT64_C(1) << 10) - 1)

static _Alignas(64) unsigned char area[AREA_MAX_BYTES];
static size_t area_bytes; /* what the host wants; 0 while unknown */

static long host_ptrace(long request, pid_t pid, void *addr, void *data)
{
	return syscall(SYS_ptrace, request, pid, addr, data);
}

static long set_xstate(pid_t pid, void *type, struct iovec *given)
{
	uint64_t present;

	if (!area_bytes) {
		struct iovec probe = {area, sizeof(area)};

		if (host_ptrace(PTRACE_GETREGSET, pid, type, &probe) < 0)
			return -1;
		area_bytes = probe.iov_len;
		memset(area, 0, sizeof(area));
	}
	if (given->iov_len >= area_bytes || given->iov_len < XSTATE_BV_OFFSET + sizeof(present))
		return host_ptrace(PTRACE_SETREGSET, pid, type, given);

	memcpy(area, given->iov_base, given->iov_len);
	memcpy(&present, area + XSTATE_BV_OFFSET, sizeof(present));
	present &= KNOWN_COMPONENTS;
	memcpy(area + XSTATE_BV_OFFSET, &present, sizeof(present));
	return host_ptrace(PTRACE_SETREGSET, pid, type, &(struct iovec){area, area_bytes});
}

long ptrace(enum __ptrace_request request, ...)
{
	long word = 0, ret;
	void *addr, *data;
	va_list args;
	pid_t pid;

	va_start(args, request);
	pid = va_arg(args, pid_t);
	addr = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);

	if (request == PTRACE_SETREGSET && (uintptr_t)addr == NT_X86_XSTATE)
		return set_xstate(pid, addr, data);

	/* The system call stores a peeked word where libc's function returns it. */
	if (request != PTRACE_PEEKTEXT && request != PTRACE_PEEKDATA && request != PTRACE_PEEKUSER)
		return host_ptrace(request, pid, addr, data);
	ret = host_ptrace(request, pid, addr, &word);
	if (ret < 0)
		return ret;
	errno = 0;
	return word;
}
