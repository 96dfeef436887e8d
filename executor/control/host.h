/* executor/control/host.h: operators that the host carries out between stages: their table, and what their files share.
 * Private to executor/control/. */
#ifndef HEDDLE_EXECUTOR_CONTROL_HOST_H
#define HEDDLE_EXECUTOR_CONTROL_HOST_H

#include "executor/objects.h"
#include "executor/control/regex.h"
#include "executor/control/stages.h"

enum { CTL_HOST_OUTPUTS = 2 };

/* A call. What is wrong first stays in s, and everything after it does nothing. */
typedef struct ctl_host {
  heddle__objects *objects;
  const heddle__node *node;
  const ctl_regex *pattern;
  heddle_tensor **in; /* contiguous, of the host; NULL: absent */
  heddle_tensor *out[CTL_HOST_OUTPUTS];
  uint32_t n_in;
  heddle_status s;
  heddle_error *err;
} ctl_host;

typedef void (*ctl_host_fn)(ctl_host *h);

/* host_text.c */
void ctl_host_concat(ctl_host *h);
void ctl_host_normalize(ctl_host *h);
void ctl_host_number_to_text(ctl_host *h);
void ctl_host_regex(ctl_host *h);
void ctl_host_split(ctl_host *h);
void ctl_host_text_to_number(ctl_host *h);
/* host_tokens.c */
void ctl_host_tokens(ctl_host *h);
heddle_status ctl_tokens_check(const heddle__node *node, ctl_regex **patterns, heddle_error *err);
/* host_sequence.c */
void ctl_host_at(ctl_host *h);
void ctl_host_construct(ctl_host *h);
void ctl_host_erase(ctl_host *h);
void ctl_host_insert(ctl_host *h);
void ctl_host_join(ctl_host *h);
void ctl_host_length(ctl_host *h);
void ctl_host_part(ctl_host *h);

/* host.c: an error of the call. */
void ctl_host_fail(ctl_host *h, heddle_status s, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Output i, of uninitialised elements; NULL where that failed. */
heddle_tensor *ctl_host_new(ctl_host *h, uint32_t i, heddle_dtype dtype, uint32_t ndim, const int64_t *shape);

/* The numbers of input i, which has to be int64; NULL where it is not. */
const int64_t *ctl_host_codes(ctl_host *h, uint32_t i);

/* The one number of input i; fallback where it is absent. */
int64_t ctl_host_number(ctl_host *h, uint32_t i, int64_t fallback);

#endif
