/* tools/generate_texts.c: heddle generate with several prompts, whose texts share runs. */
#include <inttypes.h>
#include <stdlib.h>

#include "generate.h"
#include "text.h"

static double rate_of(uint64_t tokens, uint64_t ns) {
  return ns > 0 ? (double)tokens / ((double)ns * 1e-9) : 0;
}

static int submit(heddle_generation_batch *b, const char *path, const heddle_generation *how,
                  heddle_generation_request **out, size_t *n) {
  int64_t *tokens = NULL;
  heddle_error err = {0};
  size_t count = 0;
  int status = generate_read_tokens(path, &tokens, &count);
  const heddle_generation_call call = {
      .struct_size = sizeof call, .tokens = tokens, .n_tokens = count, .generation = how, .wait_ns = HEDDLE_FOREVER};
  if (status == DONE && heddle_generation_batch_submit(b, &call, out, &err) != HEDDLE_OK)
    status = fail_text("generate", "%s: %s", path, err.text);
  *n = count;
  free(tokens);
  return status;
}

/* The tokens of a text when it has ended: printed, or added to the list; a stop token is left out. */
static int report(const options *o, heddle_generation_request *r, const char *path, size_t prompt, json_t *list,
                  uint64_t *total, uint64_t *longest) {
  enum { SOME = 256 };
  heddle_generated done = {.struct_size = sizeof done};
  heddle_error err = {0};
  int64_t tokens[SOME];
  uint64_t first = 0;
  if (heddle_generation_request_wait(r, HEDDLE_FOREVER, &done, &err) != HEDDLE_OK)
    return fail_text("generate", "%s: %s", path, err.text);
  const uint64_t shown = done.tokens - (done.end == HEDDLE_GENERATION_STOP);
  json_t *all = json_array();
  if (!o->json) print("%s:", path);
  for (size_t n = 1; first < done.tokens && n > 0; first += n) {
    if (heddle_generation_request_read(r, first, tokens, SOME, 0, &n, &err) != HEDDLE_OK) n = 0;
    for (size_t i = 0; i < n && first + i < shown; i++)
      if (o->json) json_array_append_new(all, json_integer(tokens[i]));
      else print(" %" PRId64, tokens[i]);
  }
  *total += done.tokens;
  if (*longest < done.first_ns + done.rest_ns) *longest = done.first_ns + done.rest_ns;
  if (!o->json) print("\n");
  else
    json_array_append_new(list, json_pack("{s:s, s:O, s:I, s:I, s:s, s:f}", "file", path, "tokens", all,
                                          "prompt_tokens", (json_int_t)prompt, "new_tokens", (json_int_t)done.tokens,
                                          "end", generate_end(&done), "first_token_ms", (double)done.first_ns * 1e-6));
  json_decref(all);
  return DONE;
}

static int finish(const options *o, heddle_generation_batch *b, json_t *list, uint64_t total, uint64_t ns) {
  heddle_generation_batch_stats stats = {.struct_size = sizeof stats};
  heddle_generation_batch_get_stats(b, &stats, NULL);
  if (o->json)
    return print_json("generate", json_pack("{s:O, s:I, s:f, s:I, s:I}", "texts", list, "new_tokens", (json_int_t)total,
                                            "tokens_per_second", rate_of(total, ns), "runs", (json_int_t)stats.runs,
                                            "chunks", (json_int_t)stats.chunks));
  print("%" PRIu64 " tokens of %zu texts in %" PRIu64 " runs; %.1f a second with their prompts\n", total,
        o->tokens.count, stats.runs, rate_of(total, ns));
  return DONE;
}

int generate_texts(const options *o, heddle_generator *g, const heddle_generation *how) {
  const size_t n = o->tokens.count;
  const heddle_generation_batch_options bo = {.struct_size = sizeof bo,
                                              .rows = o->rows > 0 ? (uint32_t)o->rows
                                                      : n < 8     ? (uint32_t)n
                                                                  : 8};
  heddle_generation_batch *b = NULL;
  heddle_error err = {0};
  heddle_generation_request **made = calloc(n, sizeof(heddle_generation_request *));
  size_t *prompts = calloc(n, sizeof *prompts);
  json_t *list = json_array();
  uint64_t total = 0, longest = 0;
  const bool has_room = made != NULL && prompts != NULL;
  int status = has_room ? DONE : fail_text("generate", "out of memory");
  if (status == DONE && heddle_generation_batch_create(g, &bo, &b, &err) != HEDDLE_OK) status = fail("generate", &err);
  for (size_t i = 0; i < n && has_room && status == DONE; i++)
    status = submit(b, o->tokens.data[i], how, &made[i], &prompts[i]);
  for (size_t i = 0; i < n && has_room && status == DONE; i++)
    status = report(o, made[i], o->tokens.data[i], prompts[i], list, &total, &longest);
  if (status == DONE) status = finish(o, b, list, total, longest);
  for (size_t i = 0; i < n && made != NULL; i++) heddle_generation_request_release(made[i]);
  heddle_generation_batch_release(b);
  json_decref(list);
  free(made);
  free(prompts);
  return status;
}
