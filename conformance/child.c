/* conformance/child.c: a case's process. It goes as far as the case's stage, runs the case, closes what is open, and ends
 * by exit, as a program would. A survey's process reports devices and messages to the parent instead. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

/* Reachable to the end: a case may leave its objects behind on purpose. */
static kit the_kit;
static kit_side the_side;

static const kit_case *find(const char *name) {
  for (size_t g = 0; g < n_check_groups; g++)
    for (uint32_t i = 0; i < check_groups[g]->count; i++)
      if (strcmp(check_groups[g]->cases[i].name, name) == 0) return &check_groups[g]->cases[i];
  return NULL;
}

static void name_case(kit *k, const char *name, const char *word) {
  static char text[192];
  snprintf(text, sizeof text, "%s%s%s", name, word[0] != '\0' ? ":" : "", word);
  k->name = text;
  k->param = word;
}

static bool prepare(const check_options *o, kit *k) {
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none); /* some cases die on purpose of the plugin */
  void *page = mmap(NULL, sizeof(kit_page), PROT_READ | PROT_WRITE, MAP_SHARED, KIT_PAGE_FD, 0);
  if (page == MAP_FAILED || fcntl(KIT_PIPE_FD, F_SETFD, FD_CLOEXEC) != 0) return false;
  close(KIT_PAGE_FD);
  *k = (kit){.file = o->file, .index = o->device, .side = &the_side};
  name_case(k, o->run != NULL ? o->run : "", o->word);
  the_side.page = page;
  the_side.settings = o->settings.data;
  the_side.n_settings = (uint32_t)o->settings.count;
  the_side.patience = o->seconds / CHECK_SECONDS;
  return kit_host_init(k);
}

static void each_word(void *sink, const char *word) {
  const kit_case *c = sink;
  char text[192];
  snprintf(text, sizeof text, "%s %s", c->name, word);
  kit_say(KIT_SAYS_WORD, text);
}

static void survey(kit *k) {
  kit_stages(k, KIT_STAGE_INSTANCE);
  kit_say(KIT_SAYS_BEGUN, "");
  char text[256];
  snprintf(text, sizeof text, "%u %u %s", k->root.abi_major, k->root.abi_minor, k->side->settings_of);
  kit_say(KIT_SAYS_PLUGIN, text);
  for (uint32_t i = 0; i < k->n_devices; i++) {
    heddle_pdevice_desc desc = {.struct_size = sizeof desc};
    kit_ok(k, k->root.device_describe(k->instance, i, &desc, &k->err), "device_describe");
    desc.driver[sizeof desc.driver - 1] = '\0';
    kit_say(KIT_SAYS_DEVICE, desc.driver);
    desc.name[sizeof desc.name - 1] = '\0';
    snprintf(text, sizeof text, "%d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %s", (int)desc.type,
             desc.caps, desc.memory_bytes, desc.max_buffer_bytes, desc.alignment, (unsigned)desc.compute_units,
             (unsigned)desc.max_streams, desc.name);
    kit_say(KIT_SAYS_ABOUT, text);
  }
  for (size_t g = 0; g < n_check_groups; g++)
    for (uint32_t i = 0; i < check_groups[g]->count; i++) {
      const kit_case *c = &check_groups[g]->cases[i];
      if (c->words != NULL) c->words(k, each_word, (void *)(uintptr_t)c);
    }
  kit_say_and_end(KIT_SAYS_PASS, "");
}

static void run_case(kit *k, const kit_case *c) {
  k->side->running = c;
  kit_say(KIT_SAYS_BEGUN, "");
  if (c->stage >= KIT_STAGE_INSTANCE) {
    if ((c->flags & KIT_NOT_INLINE) != 0 && kit_inline(k))
      kit_skip(k, "the device is inline: work is complete when the call returns");
    if ((c->flags & KIT_SECOND) != 0 && k->n_devices < 2) kit_skip(k, "the plugin has one device here");
  }
  c->run(k);
}

/* What the parent reads of a case begins anew with the next one; NULL for a name that is none. */
static const kit_case *next_case(kit *k, const char *text) {
  kit_page *page = k->side->page;
  char name[96];
  const size_t n = strcspn(text, ":");
  snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
  const kit_case *c = find(name);
  if (c == NULL) return NULL;
  kit_step(k, "");
  for (int i = 0; i < 2; i++) atomic_store(&page->called[i], 0);
  atomic_store(&page->last, 0);
  atomic_store(&page->fault, KIT_FAULT_OTHER);
  memset(&k->err, 0, sizeof k->err);
  name_case(k, name, text[n] == ':' ? text + n + 1 : "");
  return c;
}

int check_child(const check_options *o) {
  kit *k = &the_kit;
  if (!prepare(o, k)) return CHECK_WRONG_WORDS;
  if (o->survey) survey(k);
  const kit_case *c = find(o->run);
  if (c == NULL) return CHECK_WRONG_WORDS;
  the_side.running = c;
  kit_stages(k, c->stage);
  run_case(k, c);
  for (size_t i = 0; i < o->then.count; i++) {
    kit_heap_check(k);
    kit_say(KIT_SAYS_NEXT, "");
    c = next_case(k, o->then.data[i]);
    if (c == NULL) return CHECK_WRONG_WORDS;
    run_case(k, c);
  }
  if ((c->flags & KIT_LEAVES) == 0) {
    kit_step(k, "the end of the case");
    kit_close_all(k);
  }
  kit_heap_check(k);
  kit_step(k, "the end of the process");
  kit_say(KIT_SAYS_PASS, "");
  return CHECK_DONE; /* and main returns: exit handlers and destructors run */
}
