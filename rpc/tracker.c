/* rpc/tracker.c: what a tracker knows: keys that servers offer, requests that wait for one, and who is connected. */
#include "rpc/tracker.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { PING = 1, STOP, PUT, REQUEST, UPDATE_INFO, SUMMARY, PENDING_KEYS };
enum { MOST_OF_ONE = 256, MOST_OF_ALL = 1 << 16, LONGEST_KEY = 1024, LONGEST_INFO = 4096 };

/* A key that is offered, or a request; both lists are in the order of arrival. */
typedef struct entry {
  uint32_t connection;
  char *key;
  double priority; /* of a request */
  json_t *answer;  /* of an offer: [host, port, match key] */
} entry;

typedef struct list {
  entry *data;
  size_t count, room;
} list;

typedef struct info {
  uint32_t connection;
  json_t *about;
} info;

struct rpc_tracker {
  rpc_tracker_send send;
  void *user;
  list offers, requests;
  info *infos;
  size_t n_infos, room_infos;
};

/* ---- lists */

static void remove_at(list *l, size_t i) {
  free(l->data[i].key);
  json_decref(l->data[i].answer);
  memmove(&l->data[i], &l->data[i + 1], (--l->count - i) * sizeof *l->data);
}

/* Takes answer over. false: over a limit, or memory is out. */
static bool add(list *l, uint32_t connection, const char *key, double priority, json_t *answer) {
  size_t own = 0;
  for (size_t i = 0; i < l->count; i++) own += l->data[i].connection == connection;
  if (l->count == l->room && own < MOST_OF_ONE && l->count < MOST_OF_ALL) {
    size_t room = l->room > 0 ? 2 * l->room : 16;
    entry *more = realloc(l->data, room * sizeof *more);
    if (more != NULL) {
      l->data = more;
      l->room = room;
    }
  }
  char *copy = own < MOST_OF_ONE && l->count < l->room ? malloc(strlen(key) + 1) : NULL;
  if (copy == NULL) {
    json_decref(answer);
    return false;
  }
  strcpy(copy, key);
  l->data[l->count++] = (entry){connection, copy, priority, answer};
  return true;
}

static void remove_all_of(list *l, uint32_t connection) {
  for (size_t i = l->count; i-- > 0;)
    if (l->data[i].connection == connection) remove_at(l, i);
}

/* ---- answers */

/* Takes answer over. */
static bool reply(rpc_tracker *t, uint32_t connection, json_t *answer) {
  char *text = answer != NULL ? json_dumps(answer, JSON_ENCODE_ANY) : NULL;
  json_decref(answer);
  if (text == NULL) return false;
  t->send(t->user, connection, text);
  free(text);
  return true;
}

/* Gives offers of a key to those who wait for it. */
static void match(rpc_tracker *t, const char *key) {
  for (;;) {
    size_t offer = 0, best = t->requests.count;
    while (offer < t->offers.count && strcmp(t->offers.data[offer].key, key) != 0) offer++;
    for (size_t i = 0; i < t->requests.count; i++)
      if (strcmp(t->requests.data[i].key, key) == 0 &&
          (best == t->requests.count || t->requests.data[i].priority > t->requests.data[best].priority))
        best = i;
    if (offer == t->offers.count || best == t->requests.count) return;
    const uint32_t to = t->requests.data[best].connection;
    json_t *answer = json_pack("[i, O]", 0, t->offers.data[offer].answer);
    remove_at(&t->offers, offer);
    remove_at(&t->requests, best);
    (void)reply(t, to, answer);
  }
}

/* ---- messages */

/* A key without a zero inside, of a length that is allowed; NULL: it is none. */
static const char *key_of(const json_t *v) {
  const char *key = json_string_value(v);
  size_t n = key != NULL ? json_string_length(v) : 0;
  return key != NULL && n <= LONGEST_KEY && strlen(key) == n ? key : NULL;
}

static json_t *host_of(const json_t *given, const char *peer) {
  return key_of(given) != NULL ? json_string(key_of(given)) : json_string(peer);
}

static bool put(rpc_tracker *t, uint32_t connection, const char *peer, json_t *m) {
  const char *key = key_of(json_array_get(m, 1));
  json_t *pair = json_array_get(m, 2), *port = json_array_get(pair, 0);
  const char *name = key_of(json_array_get(pair, 1));
  if (key == NULL || name == NULL || json_array_size(pair) != 2 || (!json_is_integer(port) && key_of(port) == NULL))
    return false;
  json_t *answer = json_pack("[o, O, s]", host_of(json_array_get(m, 3), peer), port, name);
  if (answer == NULL || !add(&t->offers, connection, key, 0, answer)) return false;
  if (!reply(t, connection, json_integer(0))) return false;
  match(t, key);
  return true;
}

static bool request(rpc_tracker *t, uint32_t connection, json_t *m) {
  const char *key = key_of(json_array_get(m, 1));
  const json_t *priority = json_array_get(m, 3);
  if (key == NULL || (priority != NULL && !json_is_number(priority))) return false;
  if (!add(&t->requests, connection, key, json_number_value(priority), NULL)) return false;
  match(t, key);
  return true;
}

/* The object as it came, with the peer's address where it names none. */
static bool update_info(rpc_tracker *t, uint32_t connection, const char *peer, json_t *m) {
  json_t *about = json_deep_copy(json_array_get(m, 1)), *address = json_object_get(about, "addr");
  char *text = json_dumps(about, JSON_COMPACT);
  bool good = json_is_object(about) && text != NULL && strlen(text) <= LONGEST_INFO;
  free(text);
  if (good && json_array_size(address) == 2 && !json_is_string(json_array_get(address, 0)))
    good = json_array_set_new(address, 0, json_string(peer)) == 0;
  size_t i = 0;
  while (i < t->n_infos && t->infos[i].connection != connection) i++;
  if (good && i == t->room_infos) {
    size_t room = t->room_infos > 0 ? 2 * t->room_infos : 16;
    info *more = realloc(t->infos, room * sizeof *more);
    good = more != NULL;
    if (good) {
      t->infos = more;
      t->room_infos = room;
    }
  }
  if (!good) {
    json_decref(about);
    return false;
  }
  if (i < t->n_infos) json_decref(t->infos[i].about);
  else t->n_infos++;
  t->infos[i] = (info){connection, about};
  return reply(t, connection, json_integer(0));
}

/* The name of a server whose info key is "server:NAME"; NULL: it is none. */
static const char *server_of(const info *i) {
  const char *key = key_of(json_object_get(i->about, "key"));
  return key != NULL && strncmp(key, "server:", 7) == 0 ? key + 7 : NULL;
}

static void count(json_t *queues, const char *key, const char *what, int by) {
  json_t *queue = json_object_get(queues, key);
  if (queue == NULL) {
    if (json_object_set_new(queues, key, json_pack("{s: i, s: i}", "free", 0, "pending", 0)) != 0) return;
    queue = json_object_get(queues, key);
  }
  json_object_set_new(queue, what, json_integer(json_integer_value(json_object_get(queue, what)) + by));
}

static bool summary(rpc_tracker *t, uint32_t connection) {
  json_t *queues = json_object(), *servers = json_array();
  for (size_t i = 0; i < t->n_infos; i++) {
    const char *name = server_of(&t->infos[i]);
    if (name == NULL) continue;
    json_array_append(servers, t->infos[i].about);
    count(queues, name, "free", 0);
  }
  for (size_t i = 0; i < t->offers.count; i++) count(queues, t->offers.data[i].key, "free", 1);
  for (size_t i = 0; i < t->requests.count; i++) count(queues, t->requests.data[i].key, "pending", 1);
  return reply(t, connection, json_pack("[i, {s: o, s: o}]", 0, "queue_info", queues, "server_info", servers));
}

static bool pending_keys(rpc_tracker *t, uint32_t connection) {
  json_t *keys = json_array();
  for (size_t i = 0; i < t->offers.count; i++)
    if (t->offers.data[i].connection == connection)
      json_array_append(keys, json_array_get(t->offers.data[i].answer, 2));
  return reply(t, connection, keys);
}

bool rpc_tracker_message(rpc_tracker *t, uint32_t connection, const char *peer, const char *text, size_t bytes) {
  json_t *m = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL), *code = json_array_get(m, 0);
  bool good = false;
  if (json_is_integer(code)) switch (json_integer_value(code)) {
    case PING: good = reply(t, connection, json_integer(0)); break;
    case STOP: good = reply(t, connection, json_integer(-1)); break; /* no message ends this tracker */
    case PUT: good = put(t, connection, peer, m); break;
    case REQUEST: good = request(t, connection, m); break;
    case UPDATE_INFO: good = update_info(t, connection, peer, m); break;
    case SUMMARY: good = summary(t, connection); break;
    case PENDING_KEYS: good = pending_keys(t, connection); break;
    default: break;
    }
  json_decref(m);
  return good;
}

void rpc_tracker_close(rpc_tracker *t, uint32_t connection) {
  remove_all_of(&t->offers, connection);
  remove_all_of(&t->requests, connection);
  for (size_t i = t->n_infos; i-- > 0;) {
    if (t->infos[i].connection != connection) continue;
    json_decref(t->infos[i].about);
    t->infos[i] = t->infos[--t->n_infos];
  }
}

rpc_tracker *rpc_tracker_new(rpc_tracker_send send, void *user) {
  rpc_tracker *t = calloc(1, sizeof *t);
  if (t != NULL) *t = (rpc_tracker){.send = send, .user = user};
  return t;
}

void rpc_tracker_free(rpc_tracker *t) {
  if (t == NULL) return;
  while (t->offers.count > 0) remove_at(&t->offers, t->offers.count - 1);
  while (t->requests.count > 0) remove_at(&t->requests, t->requests.count - 1);
  for (size_t i = 0; i < t->n_infos; i++) json_decref(t->infos[i].about);
  free(t->offers.data);
  free(t->requests.data);
  free(t->infos);
  free(t);
}
