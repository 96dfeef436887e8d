/* The thread of a stream: takes commands in order, delays them, hangs or fails them where the settings ask for it, and
 * otherwise does them. After a failure all later commands are passed over until a sync has reported it. */
#include "stream.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#define POLL_NS 20000000u /* how often a thread that waits for another device looks whether its own is closing */

static bool given_up(heddle_pdevice *dev) {
  return atomic_load_explicit(&dev->stop, memory_order_relaxed) ||
         atomic_load_explicit(&dev->faulted, memory_order_relaxed);
}

static void nap(uint64_t ns) {
  struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

/* ---- failures ---- */

P_PRINTF(4, 5)
static void fail_stream(heddle_pstream *s, uint64_t position, heddle_status status, const char *format, ...) {
  va_list args;
  if (atomic_load_explicit(&s->failed, memory_order_relaxed)) return; /* the first one counts */
  pthread_mutex_lock(&s->lock);
  uint32_t n = atomic_load_explicit(&s->n_bad, memory_order_relaxed);
  sim_bad_stretch *bad = &s->bad[n % SIM_BAD_STRETCHES];
  bad->first = position;
  bad->last = UINT64_MAX;
  bad->failure.status = status;
  bad->failure.api_code = 0;
  va_start(args, format);
  vsnprintf(bad->failure.text, sizeof bad->failure.text, format, args);
  va_end(args);
  atomic_store(&s->n_bad, n + 1);
  atomic_store(&s->failed, true);
  pthread_mutex_unlock(&s->lock);
}

/* The failure that fail_stream has written last; only the worker writes it. */
static const sim_failure *failure_of(heddle_pstream *s) {
  uint32_t n = atomic_load_explicit(&s->n_bad, memory_order_relaxed);
  return &s->bad[(n - 1) % SIM_BAD_STRETCHES].failure;
}

static void fail_given_up(heddle_pstream *s, uint64_t position) {
  heddle_pdevice *dev = s->dev;
  heddle_error err;
  if (atomic_load(&dev->faulted)) {
    sim_device_check(dev, &err);
    fail_stream(s, position, HEDDLE_EDEVICE, "%.400s", err.text);
  } else {
    fail_stream(s, position, HEDDLE_ECANCELED, "sim:%u was closed before its work was done", dev->index);
  }
}

/* ---- the nasty part ---- */

static void delay(heddle_pstream *s) {
  s->random ^= s->random << 13;
  s->random ^= s->random >> 7;
  s->random ^= s->random << 17;
  uint64_t left = s->random % (s->dev->settings.delay_us * 1000 + 1);
  while (left > 0 && !given_up(s->dev)) {
    uint64_t slice = left < POLL_NS ? left : POLL_NS;
    nap(slice);
    left -= slice;
  }
}

/* An operator takes its time, which begins when the device has done what came before, on whatever stream. */
static void occupy(heddle_pstream *s, heddle_plaunch *launch) {
  heddle_pdevice *dev = s->dev;
  const uint64_t busy = sim_launch_busy_ns(launch);
  unsigned long long before = atomic_load(&dev->busy_until), until;
  if (busy == 0) {
    sim_launch_execute(launch);
    return;
  }
  do {
    const uint64_t now = dev->host->now_ns(dev->host->ctx);
    until = (before > now ? before : now) + busy;
  } while (!atomic_compare_exchange_weak(&dev->busy_until, &before, until));
  sim_launch_execute(launch);
  for (uint64_t now; !given_up(dev) && (now = dev->host->now_ns(dev->host->ctx)) < until;)
    nap(until - now < POLL_NS ? until - now : POLL_NS);
}

/* The command that never completes: the stream stands still until its device is closed or lost. */
static void hang(heddle_pstream *s, uint64_t position) {
  heddle_pdevice *dev = s->dev;
  atomic_store(&s->hung, true);
  atomic_store(&dev->hung, true);
  pthread_mutex_lock(&s->lock);
  pthread_cond_broadcast(&s->finished); /* read and idle look at hung */
  pthread_mutex_unlock(&s->lock);
  pthread_mutex_lock(&dev->lock);
  while (!given_up(dev)) pthread_cond_wait(&dev->changed, &dev->lock);
  pthread_mutex_unlock(&dev->lock);
  fail_given_up(s, position);
  atomic_store(&s->hung, false);
}

static void fail_injected(heddle_pstream *s, const sim_cmd *cmd, uint64_t position) {
  heddle_pdevice *dev = s->dev;
  char text[200];
  snprintf(text, sizeof text,
           "sim:%u: call %llu of '%s' failed while its stream executed it, as the setting 'fail' says", dev->index,
           (unsigned long long)cmd->nth, sim_call_word((sim_call)cmd->call));
  if ((cmd->flags & SIM_FLAG_FAULT) != 0) {
    sim_device_fault(dev, -1000 - (int32_t)cmd->call, text);
    fail_given_up(s, position);
  } else {
    fail_stream(s, position, HEDDLE_EFAILED, "%s", text);
  }
}

/* ---- commands ---- */

static void wait_for_position(heddle_pstream *s, const sim_cmd *cmd, uint64_t position) {
  heddle_pstream *other = cmd->u.wait.stream;
  uint64_t until = cmd->u.wait.position;
  sim_failure failure;
  while (sim_stream_wait(other, until, POLL_NS, false) != HEDDLE_OK) {
    if (!given_up(s->dev)) continue;
    fail_given_up(s, position);
    return;
  }
  if (sim_stream_failure_at(other, until - 1, &failure) != HEDDLE_OK)
    fail_stream(s, position, HEDDLE_EFAILED, "sim:%u waited for an event whose work failed: %.400s", s->dev->index,
                failure.text);
}

static void wait_for_fence(heddle_pstream *s, const sim_cmd *cmd, uint64_t position) {
  const heddle_host *host = s->dev->host;
  uint64_t pause = 2000;
  heddle_status status;
  for (int turn = 0; (status = host->fence_query(host->ctx, cmd->u.fence.fence, cmd->u.fence.value)) == HEDDLE_EBUSY;
       turn++) {
    if (given_up(s->dev)) {
      fail_given_up(s, position);
      return;
    }
    if (turn < 20) {
      sched_yield();
      continue;
    }
    nap(pause);
    if (pause < 500000) pause *= 2;
  }
  if (status != HEDDLE_OK)
    fail_stream(s, position, HEDDLE_EFAILED, "sim:%u waited for a fence that failed with status %d", s->dev->index,
                status);
}

static void copy(const sim_cmd *cmd) {
  uint64_t bytes = cmd->u.copy.bytes;
  if (bytes == 0) return;
  memcpy(cmd->u.copy.dst, cmd->u.copy.src, bytes);
  if ((cmd->flags & SIM_FLAG_LIE) != 0) cmd->u.copy.dst[bytes / 2] ^= 0x40;
}

static void fill(const sim_cmd *cmd) {
  for (uint64_t i = 0; i < cmd->u.fill.bytes; i += 4) memcpy(cmd->u.fill.dst + i, &cmd->u.fill.pattern, 4);
}

static void execute(heddle_pstream *s, const sim_cmd *cmd, uint64_t position);

static void replay(heddle_pstream *s, const heddle_pgraph *graph, uint64_t position) {
  uint64_t count;
  const sim_cmd *row = sim_graph_commands(graph, &count);
  for (uint64_t i = 0; i < count && !atomic_load_explicit(&s->failed, memory_order_relaxed); i++)
    execute(s, &row[i], position);
}

static void signal_fence(heddle_pstream *s, const sim_cmd *cmd) {
  const heddle_host *host = s->dev->host;
  if (!atomic_load_explicit(&s->failed, memory_order_relaxed)) {
    host->fence_signal(host->ctx, cmd->u.fence.fence, cmd->u.fence.value);
  } else {
    const sim_failure *failure = failure_of(s);
    host->fence_fail(host->ctx, cmd->u.fence.fence, failure->status, failure->text);
  }
}

static void execute(heddle_pstream *s, const sim_cmd *cmd, uint64_t position) {
  heddle_pdevice *dev = s->dev;
  const sim_settings *settings = &dev->settings;
  if (settings->delay_us != 0) delay(s);
  if (settings->hang != 0 && atomic_fetch_add(&dev->executed, 1) + 1 == settings->hang && !given_up(dev))
    hang(s, position);
  if (given_up(dev)) fail_given_up(s, position);
  if (!atomic_load_explicit(&s->failed, memory_order_relaxed)) {
    if ((cmd->flags & SIM_FLAG_FAIL) != 0) fail_injected(s, cmd, position);
    else switch (cmd->kind) {
      case SIM_CMD_COPY: copy(cmd); break;
      case SIM_CMD_FILL: fill(cmd); break;
      case SIM_CMD_LAUNCH: occupy(s, cmd->u.launch); break;
      case SIM_CMD_KERNEL: sim_kernel_execute(cmd); break;
      case SIM_CMD_WAIT: wait_for_position(s, cmd, position); break;
      case SIM_CMD_FENCE_WAIT: wait_for_fence(s, cmd, position); break;
      case SIM_CMD_MARK: sim_mark_execute(dev->host, cmd->u.mark.timer, cmd->u.mark.slot); break;
      case SIM_CMD_REPLAY: replay(s, cmd->u.graph, position); break;
      default: break; /* RECORD is its position; FENCE_SIGNAL is below */
      }
  }
  if (atomic_load_explicit(&dev->abandoned, memory_order_relaxed)) return; /* the host may be gone */
  if (cmd->kind == SIM_CMD_FENCE_SIGNAL) signal_fence(s, cmd);
  if ((cmd->flags & SIM_FLAG_FREE) != 0) dev->host->free(dev->host->ctx, cmd->u.copy.src);
}

/* False when there is nothing left and the device is closing. */
static bool sleep_until_work(heddle_pstream *s, uint64_t done) {
  pthread_mutex_lock(&s->lock);
  atomic_store(&s->sleeping, true);
  while (atomic_load(&s->tail) == done && !atomic_load(&s->dev->stop)) pthread_cond_wait(&s->wake, &s->lock);
  atomic_store(&s->sleeping, false);
  pthread_mutex_unlock(&s->lock);
  return atomic_load(&s->tail) != done;
}

void *sim_worker(void *arg) {
  heddle_pstream *s = arg;
  heddle_pdevice *dev = s->dev;
  uint64_t done = atomic_load(&s->done);
  for (;;) {
    if (atomic_load_explicit(&s->tail, memory_order_acquire) == done && !sleep_until_work(s, done)) break;
    execute(s, sim_queue_next(s), done);
    atomic_store(&s->done, ++done);
    if (atomic_load(&s->waiters) != 0) {
      pthread_mutex_lock(&s->lock);
      pthread_cond_broadcast(&s->finished);
      pthread_mutex_unlock(&s->lock);
    }
  }
  pthread_mutex_lock(&dev->lock);
  atomic_store(&s->ended, true);
  dev->n_workers--;
  pthread_cond_broadcast(&dev->changed);
  pthread_mutex_unlock(&dev->lock);
  return NULL;
}
