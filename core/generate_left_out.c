/* core/generate_left_out.c: the functions of heddle/generate.h and generate_batch.h in a build without generators: none can be opened. */
#include "core/parts.h"
#include "heddle/generate_batch.h"

#if !HEDDLE_HAS_GENERATE
static heddle_status none(heddle_error *err) {
  return heddle__left_out(err, "generators", "HEDDLE_GENERATE");
}

heddle_status heddle_generator_open(heddle_context *ctx, const char *path, const heddle_generator_options *options,
                                    heddle_generator **out, heddle_error *err) {
  (void)ctx, (void)path, (void)options;
  if (out != NULL) *out = NULL;
  return none(err);
}

heddle_generator *heddle_generator_retain(heddle_generator *g) {
  return g;
}

void heddle_generator_release(heddle_generator *g) {
  (void)g;
}

heddle_status heddle_generator_fork(heddle_generator *g, heddle_generator **out, heddle_error *err) {
  (void)g;
  if (out != NULL) *out = NULL;
  return none(err);
}

heddle_status heddle_generator_speculate(heddle_generator *g, const heddle_generator *draft, uint32_t tokens,
                                         heddle_error *err) {
  (void)g, (void)draft, (void)tokens;
  return none(err);
}

heddle_status heddle_generator_get_info(heddle_generator *g, heddle_generator_info *out, heddle_error *err) {
  (void)g, (void)out;
  return none(err);
}

heddle_status heddle_generator_append(heddle_generator *g, const int64_t *tokens, size_t n, heddle_error *err) {
  (void)g, (void)tokens, (void)n;
  return none(err);
}

const int64_t *heddle_generator_tokens(const heddle_generator *g, size_t *n) {
  (void)g;
  if (n != NULL) *n = 0;
  return NULL;
}

heddle_status heddle_generator_truncate(heddle_generator *g, size_t n, heddle_error *err) {
  (void)g, (void)n;
  return none(err);
}

heddle_status heddle_generator_evaluate(heddle_generator *g, uint64_t timeout_ns, heddle_error *err) {
  (void)g, (void)timeout_ns;
  return none(err);
}

heddle_status heddle_generator_logits(heddle_generator *g, uint64_t timeout_ns, heddle_tensor **out,
                                      heddle_error *err) {
  (void)g, (void)timeout_ns;
  if (out != NULL) *out = NULL;
  return none(err);
}

heddle_status heddle_sample(const heddle_tensor *logits, const int64_t *history, size_t n, uint64_t index,
                            const heddle_sampling *sampling, int64_t *token, heddle_error *err) {
  (void)logits, (void)history, (void)n, (void)index, (void)sampling, (void)token;
  return none(err);
}

heddle_status heddle_generator_next(heddle_generator *g, const heddle_sampling *sampling, uint64_t timeout_ns,
                                    int64_t *token, heddle_error *err) {
  (void)g, (void)sampling, (void)timeout_ns, (void)token;
  return none(err);
}

heddle_status heddle_generator_generate(heddle_generator *g, const heddle_generation *options, heddle_generated *out,
                                        heddle_error *err) {
  (void)g, (void)options, (void)out;
  return none(err);
}

void heddle_generator_cancel(heddle_generator *g) {
  (void)g;
}

heddle_status heddle_generator_get_stats(heddle_generator *g, heddle_generator_stats *out, heddle_error *err) {
  (void)g, (void)out;
  return none(err);
}

heddle_status heddle_generation_batch_create(const heddle_generator *g, const heddle_generation_batch_options *options,
                                             heddle_generation_batch **out, heddle_error *err) {
  (void)g, (void)options;
  if (out != NULL) *out = NULL;
  return none(err);
}

heddle_generation_batch *heddle_generation_batch_retain(heddle_generation_batch *b) {
  return b;
}

void heddle_generation_batch_release(heddle_generation_batch *b) {
  (void)b;
}

heddle_status heddle_generation_batch_submit(heddle_generation_batch *b, const heddle_generation_call *call,
                                             heddle_generation_request **out, heddle_error *err) {
  (void)b, (void)call;
  if (out != NULL) *out = NULL;
  return none(err);
}

heddle_generation_request *heddle_generation_request_retain(heddle_generation_request *r) {
  return r;
}

void heddle_generation_request_release(heddle_generation_request *r) {
  (void)r;
}

heddle_status heddle_generation_request_wait(heddle_generation_request *r, uint64_t timeout_ns, heddle_generated *out,
                                             heddle_error *err) {
  (void)r, (void)timeout_ns, (void)out;
  return none(err);
}

heddle_status heddle_generation_request_read(heddle_generation_request *r, uint64_t first, int64_t *tokens, size_t room,
                                             uint64_t timeout_ns, size_t *n, heddle_error *err) {
  (void)r, (void)first, (void)tokens, (void)room, (void)timeout_ns;
  if (n != NULL) *n = 0;
  return none(err);
}

void heddle_generation_request_cancel(heddle_generation_request *r) {
  (void)r;
}

heddle_status heddle_generation_batch_close(heddle_generation_batch *b, int cancel, uint64_t timeout_ns,
                                            heddle_error *err) {
  (void)b, (void)cancel, (void)timeout_ns;
  return none(err);
}

heddle_status heddle_generation_batch_get_stats(heddle_generation_batch *b, heddle_generation_batch_stats *out,
                                                heddle_error *err) {
  (void)b, (void)out;
  return none(err);
}
#endif
