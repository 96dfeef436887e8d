/* The calls of program.h. */
#include "program.h"

#include <stdio.h>
#include <string.h>

#include "plugins/common/chain.h"
#include "plugins/common/perror.h"

static heddle_status source_of(const k_site *site, const k_code *code, const char *tail, k_source *out,
                               heddle_error *err) {
  const k_kernel *kernel = &k_kernels[code->kernel];
  const k_text *texts[] = {k_text_find("prelude"), k_text_find("params"), k_text_find(kernel->text)};
  char macros[K_CODE_TEXT];
  out->code = code;
  for (int i = 0; i < K_PARTS - 1; i++) {
    if (texts[i] == NULL)
      return p_fail(err, HEDDLE_EINTERNAL, 0, "%s:%u: there is no kernel text '%s'", site->name, site->index,
                    kernel->text);
    out->parts[i] = texts[i]->text;
    out->lengths[i] = (size_t)texts[i]->bytes;
  }
  out->parts[K_PARTS - 1] = tail;
  out->lengths[K_PARTS - 1] = strlen(tail);
  k_code_text(code, false, macros);
  snprintf(out->what, sizeof out->what, "build kernel '%s' of '%s' with %s", kernel->name, kernel->text, macros);
  return HEDDLE_OK;
}

/* The lock is held. */
static heddle_status build(const k_programs *of, k_program *p, heddle_error *err) {
  const heddle_host *host = of->site.host;
  char *tail = NULL;
  k_source source;
  heddle_status s = p->chain != NULL ? k_chain_text(host, p->chain, &tail, err) : HEDDLE_OK;
  if (s == HEDDLE_OK) s = source_of(&of->site, &p->code, tail != NULL ? tail : "", &source, err);
  if (s == HEDDLE_OK) s = of->build(of->dev, &source, p, err);
  host->free(host->ctx, tail);
  return s;
}

/* The lock is held. */
static heddle_status find_or_build(const k_programs *of, const k_code *code, const heddle_chain *chain, k_program **out,
                                   heddle_error *err) {
  const heddle_host *host = of->site.host;
  void *memory = NULL;
  for (k_program *p = *of->list; p != NULL; p = p->next) {
    if (!k_code_same(&p->code, p->chain, code, chain)) continue;
    *out = p;
    return HEDDLE_OK;
  }
  heddle_status s = k_op_memory(&of->site, 1, of->bytes + (chain != NULL ? sizeof *chain : 0), &memory, err);
  if (s != HEDDLE_OK) return s;
  k_program *p = memory;
  p->code = *code;
  if (chain != NULL) p->chain = memcpy((char *)memory + of->bytes, chain, sizeof *chain);
  s = build(of, p, err);
  if (s != HEDDLE_OK) {
    host->free(host->ctx, memory);
    return s;
  }
  p->next = *of->list;
  *of->list = *out = p;
  return HEDDLE_OK;
}

heddle_status k_program_get(const k_programs *of, const k_code *code, const heddle_chain *chain, k_program **out,
                            heddle_error *err) {
  pthread_mutex_lock(of->lock);
  const heddle_status s = find_or_build(of, code, chain, out, err);
  pthread_mutex_unlock(of->lock);
  return s;
}
