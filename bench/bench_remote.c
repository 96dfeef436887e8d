/* bench/bench_remote.c: runs on a remote device against a bare TLS connection that carries the same bytes.
 * bench_remote bare KEY_FILE: a TLS server that takes and gives the number of bytes that each request names; prints its port.
 * bench_remote client KEY_FILE HOST:PORT HOST:PORT (of the device server, and of the bare one): on standard input "WHAT COUNT" with
 * WHAT one of pingpong, one, node (a one-node run here), stream, bulk (128 MiB out, 64 MiB in), bulk_node (the same run here), steps
 * (100 nodes on cpu and the remote device in turn), steps_node (the same here), flight (one node, 8 runs in flight), answered with
 * nanoseconds of one. */
#include "bench/bench.h"
#include "hand_chain.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plugins/common/remote/tls.h"
#include "plugins/common/remote/wire.h"

enum { SMALL = 16, LARGE = 16 << 20, PIECE = 1 << 20, LIMIT_MS = 10000, STEPS = 100, FLIGHT = 8 };

static char piece[PIECE];

static void fail(const char *why) {
  fprintf(stderr, "bench_remote: %s\n", why);
  exit(1);
}

static void begin(transport *t, int fd, const char *key, bool is_server) {
  char why[TLS_WHY];
  const int yes = 1;
  const tls_options o = {.psk = key, .is_server = is_server, .limit_ms = LIMIT_MS};
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (!transport_init(t, fd, fd, 0)) fail("no transport");
  if (!tls_start(t, &o, why)) fail(why);
}

static bool take(transport *t, uint64_t bytes) {
  for (; bytes > 0; bytes -= bytes < PIECE ? bytes : PIECE)
    if (!transport_receive(t, piece, bytes < PIECE ? bytes : PIECE)) return false;
  return true;
}

static bool give(transport *t, uint64_t bytes) {
  for (; bytes > 0; bytes -= bytes < PIECE ? bytes : PIECE)
    if (!transport_send(t, piece, bytes < PIECE ? bytes : PIECE)) return false;
  return true;
}

/* ---- the bare server: a head says how many bytes follow it, and how many are wanted */

static int serve(const char *key) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  socklen_t size = sizeof at;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 4) != 0 ||
      getsockname(listener, (struct sockaddr *)&at, &size) != 0)
    fail("no port");
  printf("%u\n", (unsigned)ntohs(at.sin_port));
  fflush(stdout);
  for (;;) {
    transport t;
    uint8_t head[WIRE_HEAD];
    const int fd = accept(listener, NULL, NULL);
    if (fd < 0) return 1;
    begin(&t, fd, key, true);
    while (transport_receive(&t, head, sizeof head)) {
      const wire_head h = wire_head_take(head);
      const uint64_t wanted = (uint64_t)h.kind << 32 | h.id;
      if (!take(&t, h.bytes) || !give(&t, wanted)) break;
    }
    transport_close(&t);
  }
}

/* ---- the client */

static transport bare;
static heddle_executor *small, *large, *local, *local_large, *steps, *local_steps, *flight;

static void exchange(uint64_t out, uint64_t in) {
  uint8_t head[WIRE_HEAD + 4096];
  const uint64_t rest = out - WIRE_HEAD, first = rest < 4096 ? rest : 0;
  memset(head, 0, sizeof head);
  wire_head_put(head, &(wire_head){.bytes = rest, .kind = (uint32_t)(in >> 32), .id = (uint32_t)in});
  if (!transport_send(&bare, head, WIRE_HEAD + first) || !give(&bare, rest - first) || !take(&bare, in))
    fail("the bare connection has ended");
}

static void run_once(heddle_executor *ex) {
  heddle_error err;
  check(heddle_executor_run(ex, UINT64_MAX, &err), &err);
}

/* Of a stream of runs that is full. */
static double fly(int count) {
  heddle_error err;
  double start = 0;
  for (int i = 0; i < count + 2 * FLIGHT; i++) {
    if (i >= FLIGHT) check(heddle_executor_wait(flight, UINT64_MAX, &err), &err);
    if (i == 2 * FLIGHT - 1) start = now_ns();
    if (i < count + FLIGHT) check(heddle_executor_start(flight, &err), &err);
  }
  return (now_ns() - start) / count;
}

static double measure(const char *what, int count) {
  enum { IN = WIRE_HEAD + 16, OUT = WIRE_HEAD + 20 }; /* of a replay and its report */
  const double start = now_ns();
  if (strcmp(what, "flight") == 0) return fly(count);
  for (int i = 0; i < count; i++) {
    if (strcmp(what, "pingpong") == 0) exchange(IN + 2 * 4 * SMALL, OUT + 4 * SMALL);
    else if (strcmp(what, "stream") == 0) exchange(IN + UINT64_C(2) * 4 * LARGE, OUT + UINT64_C(4) * LARGE);
    else if (strcmp(what, "one") == 0) run_once(small);
    else if (strcmp(what, "node") == 0) run_once(local);
    else if (strcmp(what, "bulk") == 0) run_once(large);
    else if (strcmp(what, "bulk_node") == 0) run_once(local_large);
    else if (strcmp(what, "steps") == 0) run_once(steps);
    else if (strcmp(what, "steps_node") == 0) run_once(local_steps);
    else fail("no such measurement");
  }
  return (now_ns() - start) / count;
}

static int client(const char *key, const char *device, const char *bare_at) {
  static const char *const remote[2] = {"remote:0", "remote:0"}, *const here[2] = {"cpu", "cpu"},
                           *const both[2] = {"cpu", "remote:0"};
  struct sockaddr_in at = {.sin_family = AF_INET};
  char address[96], host[64], line[128], what[32];
  heddle_error err;
  heddle_context *ctx;
  int count;
  unsigned port = 0;
  snprintf(address, sizeof address, "tls:%s", device);
  const heddle_setting settings[] = {{"remote.servers", address}, {"remote.psk", key}};
  if (sscanf(bare_at, "%63[0-9.]:%u", host, &port) != 2 || inet_pton(AF_INET, host, &at.sin_addr) != 1)
    fail("no address");
  at.sin_port = htons((uint16_t)port);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) fail("no bare server");
  begin(&bare, fd, key, false);
  check(heddle_context_create(settings, 2, NULL, NULL, &ctx, &err), &err);
  small = hand_chain(ctx, 1, SMALL, remote);
  local = hand_chain(ctx, 1, SMALL, here);
  large = hand_chain(ctx, 1, LARGE, remote);
  local_large = hand_chain(ctx, 1, LARGE, here);
  steps = hand_chain(ctx, STEPS, SMALL, both);
  local_steps = hand_chain(ctx, STEPS, SMALL, here);
  flight = hand_chain_in_flight(ctx, 1, SMALL, remote, FLIGHT);
  while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%31s %d", what, &count) == 2) {
    printf("%.1f\n", measure(what, count));
    fflush(stdout);
  }
  heddle_executor_release(small);
  heddle_executor_release(local);
  heddle_executor_release(large);
  heddle_executor_release(local_large);
  heddle_executor_release(steps);
  heddle_executor_release(local_steps);
  heddle_executor_release(flight);
  heddle_context_release(ctx);
  transport_close(&bare);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "bare") == 0) return serve(argv[2]);
  if (argc == 5 && strcmp(argv[1], "client") == 0) return client(argv[2], argv[3], argv[4]);
  fprintf(stderr, "usage: bench_remote bare KEY_FILE, or bench_remote client KEY_FILE HOST:PORT HOST:PORT\n");
  return 2;
}
