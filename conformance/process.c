/* conformance/process.c: the group "process": what a plugin leaves of the process that it is loaded into: its state, its
 * output, its descriptors, and its end without any closing. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/interpose.h"
#include "conformance/kit_side.h"
#include "conformance/proc_self.h"
#include "conformance/process_left.h"
#include "conformance/process_state.h"
#include "conformance/tables.h"

/* ---- state */

/* Calls that fail: what a plugin does then is often written last. */
static void refused_work(kit *k) {
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = UINT64_C(1) << 60};
  heddle_pbuffer *buffer = NULL;
  int64_t n = 0;
  (void)k->t.memory.alloc(k->dev, &desc, &buffer, &k->err);
  desc.bytes = 64, desc.kind = 99;
  (void)k->t.memory.alloc(k->dev, &desc, &buffer, &k->err);
  (void)k->t.device.query(k->dev, 4711, &n, &k->err);
}

static void ordered_work(kit *k, heddle_pstream *stream, heddle_pbuffer *buffer) {
  heddle_pevent *event = NULL;
  heddle_pfence fence = kit_fence(k);
  kit_pinned page = kit_pinned_new(k, k->dev, 4096);
  kit_h2d(k, stream, buffer, 0, page.buffer, 0, 4096);
  kit_d2h(k, stream, page.buffer, 0, buffer, 0, 4096);
  kit_d2d(k, stream, buffer, 0, buffer, 2048, 1024);
  kit_fill(k, stream, buffer, 0, 4096, 1);
  kit_ok(k, k->t.event.create(k->dev, &event, &k->err), "event.create");
  kit_ok(k, k->t.event.record(event, stream, &k->err), "event.record");
  kit_ok(k, k->t.event.wait(stream, event, &k->err), "event.wait");
  kit_ok(k, k->t.fence.signal(stream, fence, 1, &k->err), "fence.signal");
  (void)kit_fence_wait(k, fence, 1, kit_patience_ms(k, 5000)); /* the cases of fences say what is wrong */
  kit_sync(k, stream);
  k->t.event.free(event);
  kit_fence_free(k, fence);
  kit_pinned_free(k, &page);
}

void process_work(kit *k) {
  heddle_pstream *stream = NULL;
  heddle_status s = k->t.stream.create(k->dev, HEDDLE_STREAM_COMPUTE, 0, &stream, &k->err);
  if (s == HEDDLE_EUNSUPPORTED) return;
  kit_ok(k, s, "stream.create");
  heddle_pbuffer *buffer = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096);
  unsigned char bytes[4096];
  kit_pattern(bytes, sizeof bytes, 1);
  kit_put(k, stream, buffer, 0, bytes, sizeof bytes);
  kit_get(k, stream, buffer, 0, bytes, sizeof bytes);
  if (!kit_inline(k)) ordered_work(k, stream, buffer);
  refused_work(k);
  kit_free(k, k->dev, buffer);
  k->t.stream.close(stream);
}

static void compare(kit *k, const process_state *before, const char *when) {
  static char last[512]; /* what stays is reported once */
  char what[256] = "", note[512] = "";
  bool differs = process_state_differs(before, k->file, what, sizeof what, note, sizeof note);
  if (note[0] != '\0' && strcmp(note, last) != 0) kit_note(k, "%s", note);
  snprintf(last, sizeof last, "%s", note);
  if (differs) kit_fail(k, "%s changed %s", when, what);
}

static void state(kit *k) {
  process_state *before = process_state_take();
  if (before == NULL) kit_skip(k, "the kit is out of memory");
  if (!kit_stage_library(k)) kit_skip(k, "%s", k->err.text);
  compare(k, before, "loading the file");
  if (!kit_stage_entry(k)) kit_skip(k, "%s", k->err.text);
  compare(k, before, "the entry");
  if (!kit_stage_instance(k)) kit_skip(k, "%s", k->err.text);
  compare(k, before, "open_instance");
  if (!kit_stage_device(k)) kit_skip(k, "%s", k->err.text);
  compare(k, before, "device.open");
  process_work(k);
  compare(k, before, "work on a stream");
  kit_close_all(k);
  compare(k, before, "closing");
  process_state_free(before);
}

static void output(kit *k) {
  struct stat info;
  FILE *file = tmpfile();
  interpose_watch(k->file);
  if (file == NULL || fflush(stdout) != 0) kit_skip(k, "the kit could not make a temporary file");
  int before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
  if (before < 0 || dup2(fileno(file), STDOUT_FILENO) < 0) kit_skip(k, "the kit could not redirect the output");
  bool there = kit_stage_library(k) && kit_stage_entry(k) && kit_stage_instance(k) && kit_stage_device(k);
  if (there) {
    process_work(k);
    kit_close_all(k);
  }
  fflush(stdout);
  bool known = fstat(STDOUT_FILENO, &info) == 0;
  dup2(before, STDOUT_FILENO);
  close(before);
  fclose(file);
  if (known && info.st_size > 0)
    kit_fail(k, "%lld bytes were printed to the standard output, which is the program's", (long long)info.st_size);
  if (interpose_printed() != NULL)
    kit_fail(k, "the plugin wrote to the program's standard outputs (%s); its words go to host.log",
             interpose_printed());
  if (!there) kit_skip(k, "%s", k->err.text);
}

static void descriptors(kit *k) {
  uint32_t before = 0, now = 0;
  for (int round = 0; round < 8; round++) {
    heddle_pinstance *first = k->instance;
    kit_ok(k, k->root.open_instance(&k->host, &k->instance, &k->err), "open_instance");
    k->dev = kit_open(k, k->index);
    process_work(k);
    kit_close_all(k);
    k->instance = first;
    now = proc_descriptors();
    if (round == 3) before = now; /* drivers keep some from the first times on */
  }
  if (now > before)
    kit_fail(k, "after four more rounds of opening and closing, %u descriptors are open, and %u before", (unsigned)now,
             (unsigned)before);
}

static void threads(kit *k) {
  uint32_t before = 0, now = 0;
  for (int round = 0; round < 8; round++) {
    k->dev = kit_open(k, k->index);
    process_work(k);
    kit_close(k, k->dev);
    /* A thread that has ended is in /proc for a moment longer. */
    for (int wait = 0; wait < 200; wait++) {
      now = proc_threads();
      if (round < 7 || now <= before) break;
      kit_sleep_ms(10);
    }
    if (round == 3) before = now;
  }
  if (now > before)
    kit_fail(k, "after four more rounds of opening and closing, %u threads are running, and %u before", (unsigned)now,
             (unsigned)before);
}

/* ---- threads and the end */

static void *open_there(void *arg) {
  kit *k = arg;
  k->dev = kit_open(k, k->index);
  return NULL;
}

static void *work_there(void *arg) {
  process_work(arg);
  return NULL;
}

static void *close_there(void *arg) {
  kit *k = arg;
  kit_close(k, k->dev);
  return NULL;
}

static void on_thread(kit *k, void *(*run)(void *arg)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, k) != 0) kit_skip(k, "the kit could not make a thread");
  pthread_join(thread, NULL);
}

static void elsewhere(kit *k) {
  on_thread(k, open_there); /* each thread has ended before the next begins: what is bound to one is gone */
  on_thread(k, work_there);
  on_thread(k, close_there);
}

/* Leaves a stream, a buffer and, where there can be some, unfinished work behind. */
static void leave(kit *k, bool busy) {
  heddle_pstream *stream = NULL;
  heddle_status s = k->t.stream.create(k->dev, HEDDLE_STREAM_COMPUTE, 0, &stream, &k->err);
  if (s == HEDDLE_EUNSUPPORTED) return;
  kit_ok(k, s, "stream.create");
  kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096);
  if (!busy) return;
  k->side->left_behind = kit_busy_put(k, k->dev, stream);
  kit_ok(k, k->t.stream.submit(stream, &k->err), "stream.submit");
}

static void end_open(kit *k) {
  leave(k, false);
}

static void end_busy(kit *k) {
  leave(k, true);
}

static void *exit_there(void *arg) {
  (void)arg;
  exit(0);
}

static void end_elsewhere(kit *k) {
  pthread_t thread;
  leave(k, true);
  kit_heap_check(k);
  kit_step(k, "the end of the process, from a second thread");
  kit_say(KIT_SAYS_PASS, "");
  if (pthread_create(&thread, NULL, exit_there, NULL) != 0) return;
  pthread_join(thread, NULL);
}

KIT_GROUP(kit_process, "process",
          {"process/state", "a plugin changes no state of the process and none of the calling thread", KIT_STAGE_FILE,
           KIT_OPENS | KIT_REFUSES, 30, state, NULL},
          {"process/output", "the standard outputs are the program's", KIT_STAGE_FILE, KIT_OPENS | KIT_REFUSES, 30,
           output, NULL},
          {"process/descriptors", "what is opened is closed: descriptors", KIT_STAGE_INSTANCE, KIT_OPENS | KIT_REFUSES,
           60, descriptors, NULL},
          {"process/threads", "what is started is ended: threads", KIT_STAGE_INSTANCE, KIT_OPENS | KIT_REFUSES, 60,
           threads, NULL},
          {"process/other_threads", "a device may be opened, used and closed by different threads", KIT_STAGE_INSTANCE,
           KIT_OPENS | KIT_REFUSES, 30, elsewhere, NULL},
          {"process/children", "what is started is ended and waited for: processes", KIT_STAGE_FILE,
           KIT_OPENS | KIT_REFUSES, 30, process_children, NULL},
          {"process/inherited", "no descriptor of the plugin's reaches programs that the host starts", KIT_STAGE_FILE,
           KIT_OPENS | KIT_REFUSES, 30, process_inherited, NULL},
          {"process/thread_signals", "signals of the program do not come to threads of the plugin", KIT_STAGE_FILE,
           KIT_OPENS | KIT_REFUSES, 30, process_thread_signals, NULL},
          {"process/environment", "settings come from host.config, not from the environment", KIT_STAGE_FILE,
           KIT_OPENS | KIT_REFUSES, 30, process_environment, NULL},
          {"process/calls", "no call changes the state of the process or of the calling thread", KIT_STAGE_DEVICE, 0,
           30, process_calls, NULL},
          {"process/functions", "no function whose state the whole process shares is called", KIT_STAGE_FILE,
           KIT_OPENS | KIT_REFUSES, 30, process_functions, NULL},
          {"process/globals", "a plugin keeps no mutable data at file scope", KIT_STAGE_FILE, KIT_OPENS | KIT_REFUSES,
           30, process_globals, NULL},
          {"process/forked", "a plugin that needs a process starts a program, and goes on in no copy of the host",
           KIT_STAGE_FILE, KIT_OPENS | KIT_REFUSES, 30, process_forked, NULL},
          {"process/child-kept", "a plugin waits for its own child processes alone", KIT_STAGE_FILE,
           KIT_OPENS | KIT_REFUSES, 30, process_child_kept, NULL},
          {"process/exit", "a process may end with everything open", KIT_STAGE_DEVICE, KIT_LEAVES | KIT_REFUSES, 30,
           end_open, NULL},
          {"process/exit_busy", "a process may end while a device is at work", KIT_STAGE_DEVICE,
           KIT_LEAVES | KIT_REFUSES, 30, end_busy, NULL},
          {"process/exit_elsewhere", "a process may end from any thread", KIT_STAGE_DEVICE, KIT_LEAVES | KIT_REFUSES,
           30, end_elsewhere, NULL});
