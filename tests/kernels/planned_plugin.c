/* A plugin for the test of the kernels: the plugin cpu under another name, "planned", which writes down each program that
 * the plans for GPUs ask for when it is asked about a region. So all programs are found without a device or a compiler.
 *
 * A program is a file in the folder HEDDLE_PLANNED, named after a hash of it: lines with the text's name, the options and
 * the kernel's name, and then the tail. */
#include "plugins/common/chain.h"
#include "plugins/common/filecache.h"
#include "plugins/common/kernels/plan.h"
#include "plugins/common/perror.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

/* One process has it once. */
static heddle_plugin root;
static heddle_op_table ops;
static const heddle_plugin *under;
static const heddle_host *the_host;

static bool write_program(const k_step *step) {
  const k_kernel *kernel = &k_kernels[step->code.kernel];
  char macros[K_CODE_TEXT], *tail = NULL;
  k_code_text(&step->code, false, macros);
  if (step->chain != NULL && k_chain_text(the_host, step->chain, &tail, NULL) != HEDDLE_OK) return false;
  const char *parts[] = {kernel->text, "\n", macros, "\n", kernel->name, "\n", tail != NULL ? tail : ""};
  filecache_key key = filecache_key_start();
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) filecache_key_add(&key, parts[i], strlen(parts[i]));
  char name[CACHEFILE_NAME], why[CACHEFILE_WHY];
  const cachefile_place place = {getenv("HEDDLE_PLANNED"), "planned-", ".txt", UINT64_MAX};
  uint64_t bytes = 0;
  cachefile f;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) bytes += strlen(parts[i]);
  filecache_name(name, "planned", filecache_key_end(key), "txt");
  const bool begun = cachefile_begin(&f, &place, name, bytes, why);
  bool good = begun;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    good = good && cachefile_put(&f, parts[i], strlen(parts[i]), why);
  if (good) good = cachefile_keep(&f, false, why);
  else if (begun) cachefile_drop(&f);
  the_host->free(the_host->ctx, tail);
  return good;
}

static heddle_status query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region, heddle_offer_fn offer,
                           void *sink, heddle_error *err) {
  k_plan plan;
  bool good = true;
  heddle_status s = k_plan_make(the_host, region, K_HAS_F64, &plan, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < plan.n_steps; i++)
    good = (plan.steps[i].kind == K_STEP_COPY || write_program(&plan.steps[i])) && good;
  k_plan_free(&plan);
  if (!good) return p_fail(err, HEDDLE_EIO, 0, "planned: a program could not be written to HEDDLE_PLANNED");
  return under->op->query(self, index, region, offer, sink, err);
}

static heddle_status partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                               heddle_propose_fn propose, void *sink, heddle_error *err) {
  (void)self, (void)index;
  unsigned char *taken = calloc(region->nodes.count + 1, 1);
  if (taken == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "planned: no memory");
  heddle_status s = heddle_chain_propose(the_host, region, taken, propose, sink, err);
  free(taken);
  return s;
}

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  the_host = host;
  return under->open_instance(host, out, err);
}

const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  void *library = dlopen(HEDDLE_TEST_CPU, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library != NULL ? dlsym(library, "heddle_plugin_entry") : NULL;
  heddle_plugin_entry_fn entry = NULL;
  memcpy(&entry, &symbol, sizeof entry);
  under = entry != NULL ? entry(host, err) : NULL;
  if (under == NULL || getenv("HEDDLE_PLANNED") == NULL) {
    p_fail(err, HEDDLE_ENOTFOUND, 0, "planned: there is no plugin cpu, or no HEDDLE_PLANNED");
    return NULL;
  }
  root = *under;
  ops = *under->op;
  ops.query = query;
  ops.partition = partition;
  root.name = "planned";
  root.open_instance = open_instance;
  root.op = &ops;
  root.layout = NULL;
  return &root;
}
