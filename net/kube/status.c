/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kube/status.h"

#include "base/num.h"
#include "net/kube/frames.h"

void kube_status_from_frame(const struct kube_frame *f, struct kube_status *ret)
{
	uint64_t code;

	*ret = (struct kube_status){.code = 0};
	if (parse_u64(str_of(f->code), &code) == 0 && code < 1000)
		ret->code = (unsigned int)code;
	(void)str_copy(ret->reason, sizeof(ret->reason), str_of(f->reason));
	(void)str_copy(ret->message, sizeof(ret->message), str_of(f->message));
}

bool kube_status_parse(struct str json, struct kube_status *ret)
{
	struct kube_frames f;

	*ret = (struct kube_status){.code = 0};
	kube_frames_init(&f, KUBE_STREAM_OBJECT, NULL);
	if (kube_frames_feed(&f, json) < 0 || kube_frames_end(&f) < 0 ||
		!str_is(str_of(f.frame.kind), "Status"))
		return false;
	kube_status_from_frame(&f.frame, ret);
	return true;
}
