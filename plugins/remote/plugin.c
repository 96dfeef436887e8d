/* The entry, the instance with its servers, and their devices. */
#include "plugins/remote/remote.h"

#include <stdlib.h>

#include "plugins/common/pbuild.h"
#include "plugins/common/setting.h"

enum { MOST_SERVERS = 64, MOST_LIST = 8192 };

/* ---------------------------------------------------------------- settings */

static heddle_status read_number(const heddle_host *host, const char *key, uint64_t usual, uint64_t low, uint64_t high,
                                 uint64_t *out, heddle_error *err) {
  char text[24], *end = text;
  const int64_t length = host->config(host->ctx, key, text, sizeof text);
  *out = usual;
  if (length < 0) return HEDDLE_OK;
  if (length < (int64_t)sizeof text) *out = strtoull(text, &end, 10);
  if (length < (int64_t)sizeof text && end != text && *end == '\0' && text[0] != '-' && *out >= low && *out <= high)
    return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "remote: the setting %s is a number from %llu to %llu", key,
                (unsigned long long)low, (unsigned long long)high);
}

static heddle_status read_text(const heddle_host *host, const char *key, char *out, size_t room, heddle_error *err) {
  const int64_t length = host->config(host->ctx, key, out, room);
  if (length < 0) out[0] = '\0';
  if (length < (int64_t)room) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "remote: the setting %s is too long", key);
}

static heddle_status read_settings(heddle_pinstance *self, heddle_error *err) {
  const heddle_host *host = self->host;
  uint64_t connect = 0, quiet = 0, request = 0;
  heddle_status s = read_number(host, "connect_ms", 5000, 10, 600000, &connect, err);
  if (s == HEDDLE_OK) s = read_number(host, "silence_ms", 10000, 500, 3600000, &quiet, err);
  if (s == HEDDLE_OK) s = read_number(host, "request_ms", 300000, 100, 86400000, &request, err);
  if (s == HEDDLE_OK) s = read_number(host, "lose_on_fill", UINT64_MAX, 0, UINT32_MAX, &self->lose_at, err);
  if (s == HEDDLE_OK) s = read_number(host, "fail_on_fill", UINT64_MAX, 0, UINT32_MAX, &self->fail_at, err);
  if (s == HEDDLE_OK) s = read_text(host, "psk", self->psk, sizeof self->psk, err);
  if (s == HEDDLE_OK) s = read_text(host, "tls_cert", self->tls_cert, sizeof self->tls_cert, err);
  if (s == HEDDLE_OK) s = read_text(host, "tls_key", self->tls_key, sizeof self->tls_key, err);
  if (s == HEDDLE_OK) s = read_text(host, "tls_ca", self->tls_ca, sizeof self->tls_ca, err);
  if (s == HEDDLE_OK) s = read_text(host, "tls_name", self->tls_name, sizeof self->tls_name, err);
  self->connect_ms = (uint32_t)connect;
  self->quiet_ms = (uint32_t)quiet;
  self->request_ms = (uint32_t)request;
  return s;
}

/* ---------------------------------------------------------------- the instance */

static void close_instance(heddle_pinstance *self) {
  if (self == NULL) return;
  const heddle_host *host = self->host;
  for (uint32_t i = 0; i < self->n_servers; i++) {
    remote_link_drop(self->servers[i].link);
    host->free(host->ctx, self->servers[i].devices);
  }
  host->free(host->ctx, self->servers);
  pthread_mutex_destroy(&self->lock);
  host->free(host->ctx, self);
}

/* A server that cannot be reached has no devices; it is an error where none can be reached. */
static heddle_status add(heddle_pinstance *self, const char *address, heddle_error *err) {
  const heddle_host *host = self->host;
  remote_server *server = &self->servers[self->n_servers];
  if (self->n_servers == MOST_SERVERS)
    return p_fail(err, HEDDLE_EINVAL, 0, "remote: at most %d servers can be used", (int)MOST_SERVERS);
  *server = (remote_server){0};
  if ((size_t)snprintf(server->address, sizeof server->address, "%s", address) >= sizeof server->address)
    return p_fail(err, HEDDLE_EINVAL, 0, "remote: the address of a server is too long");
  heddle_status s = remote_link_open(self, address, &server->link, err);
  if (s != HEDDLE_OK) return s;
  self->n_servers++;
  server->n_devices = server->link->n_about;
  server->devices = remote_new(host, (server->n_devices + 1) * sizeof *server->devices);
  if (server->devices == NULL) {
    server->n_devices = 0;
    return p_fail(err, HEDDLE_ENOMEM, 0, "remote: no memory for %s", address);
  }
  memcpy(server->devices, server->link->about, server->n_devices * sizeof *server->devices);
  self->n_devices += server->n_devices;
  return HEDDLE_OK;
}

static heddle_status add_all(heddle_pinstance *self, heddle_error *err) {
  const heddle_host *host = self->host;
  char list[MOST_LIST], *rest = list;
  int64_t length = host->config(host->ctx, "servers", list, sizeof list);
  if (length < 0) length = host->config(host->ctx, "", list, sizeof list); /* the setting remote (HEDDLE_REMOTE) */
  heddle_error first = {.status = HEDDLE_OK};
  if (length < 0)
    return p_fail(err, HEDDLE_ENODEV, 0,
                  "remote: no server is named: HEDDLE_REMOTE, or the setting remote.servers, has addresses");
  if (length >= (int64_t)sizeof list) return p_fail(err, HEDDLE_EINVAL, 0, "remote: the list of servers is too long");
  while (*rest != '\0') {
    heddle_error why;
    const char *word = rest;
    rest += strncmp(word, "exec:", 5) == 0 ? strlen(word) : strcspn(word, ","); /* a program's words may have commas */
    if (*rest == ',') *rest++ = '\0';
    if (*word == '\0' || add(self, word, &why) == HEDDLE_OK) continue;
    host->log(host->ctx, HEDDLE_LOG_WARN, "remote", why.text);
    if (first.status == HEDDLE_OK) first = why;
    if (why.status == HEDDLE_EINVAL || why.status == HEDDLE_ENOMEM) {
      if (err != NULL) *err = why;
      return why.status;
    }
  }
  if (self->n_devices > 0) return HEDDLE_OK;
  if (first.status == HEDDLE_OK) return p_fail(err, HEDDLE_ENODEV, 0, "remote: the servers have no devices");
  return p_fail(err, HEDDLE_ENODEV, first.api_code, "remote: %s", first.text);
}

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  heddle_pinstance *self = remote_new(host, sizeof *self);
  if (self != NULL) self->servers = remote_new(host, MOST_SERVERS * sizeof *self->servers);
  if (self == NULL || self->servers == NULL || pthread_mutex_init(&self->lock, NULL) != 0) {
    if (self != NULL) host->free(host->ctx, self->servers);
    host->free(host->ctx, self);
    return p_fail(err, HEDDLE_ENOMEM, 0, "remote: no memory for an instance");
  }
  self->host = host;
  heddle_status s = read_settings(self, err);
  if (s == HEDDLE_OK) s = add_all(self, err);
  if (s == HEDDLE_OK) *out = self;
  else close_instance(self);
  return s;
}

static heddle_status device_count(heddle_pinstance *self, uint32_t *out, heddle_error *err) {
  (void)err;
  *out = self->n_devices;
  return HEDDLE_OK;
}

static heddle_status device_describe(heddle_pinstance *self, uint32_t index, heddle_pdevice_desc *desc,
                                     heddle_error *err) {
  remote_server *server;
  uint32_t remote;
  heddle_status s = remote_find(self, index, &server, &remote, err);
  if (s != HEDDLE_OK) return s;
  const heddle_pdevice_desc *d = &server->devices[remote].desc;
  desc->type = HEDDLE_DEVICE_EXT;
  memcpy(desc->name, d->name, sizeof desc->name);
  memcpy(desc->driver, d->driver, sizeof desc->driver);
  desc->pci_domain = desc->pci_bus = desc->pci_device = desc->pci_function = UINT32_MAX;
  desc->caps = HEDDLE_CAP_HOST_CORES   /* chosen by name only: a network is no place to go unasked; waits sleep */
               | HEDDLE_CAP_LIBRARIES; /* whether the server runs them is known when it is asked */
  desc->memory_bytes = d->memory_bytes;
  desc->max_buffer_bytes = d->max_buffer_bytes;
  desc->alignment = d->alignment;
  desc->import_alignment = 1;
  desc->event_domain = (uint64_t)(server - self->servers);
  desc->compute_units = d->compute_units;
  desc->max_streams = 1; /* one connection: with one stream, a run of neighbouring steps is one message */
  return HEDDLE_OK;
}

static const heddle_psetting settings[] = {
    P_SETTING_TEXT("servers", "",
                   "addresses of servers, with commas between: unix:PATH, tcp:HOST:PORT, tls:HOST:PORT, ssh:HOST, "
                   "tracker:HOST:PORT/KEY, exec:PROGRAM (the last)"),
    P_SETTING_PATH("psk", "", "for tls: a file of heddle keys, which the server has too"),
    P_SETTING_PATH("tls_cert", "", "for tls: the certificate of this client"),
    P_SETTING_PATH("tls_key", "", "for tls: the key of that certificate"),
    P_SETTING_PATH("tls_ca", "", "for tls: the certificate of the authority that servers' certificates are from"),
    P_SETTING_TEXT("tls_name", "", "for tls: the name in the server's certificate; that of the address by default"),
    P_SETTING_NUMBER("connect_ms", "5000", 10, 600000, "time limit to reach a server"),
    P_SETTING_NUMBER("silence_ms", "10000", 500, 3600000, "a server that is silent for so long is lost"),
    P_SETTING_NUMBER("request_ms", "300000", 100, 86400000, "time limit of a request, such as to prepare an operator"),
    P_SETTING_NUMBER("lose_on_fill", "", 0, UINT32_MAX,
                     "for heddle check-plugin: a fill with this word loses the device"),
    P_SETTING_NUMBER("fail_on_fill", "", 0, UINT32_MAX, "for heddle check-plugin: a fill with this word fails"),
};

static const heddle_plugin table = {
    .struct_size = sizeof table,
    .abi_major = HEDDLE_ABI_MAJOR,
    .abi_minor = HEDDLE_ABI_MINOR,
    .features = P_FEATURES,
    .build = P_BUILD,
    .name = "remote",
    .close_instance = close_instance,
    .open_instance = open_instance,
    .device_count = device_count,
    .device_describe = device_describe,
    .device = &remote_device_table,
    .memory = &remote_memory_table,
    .copy = &remote_copy_table,
    .stream = &remote_stream_table,
    .event = &remote_event_table,
    .fence = &remote_fence_table,
    .op = &remote_op_table,
    .layout = &remote_layout_table,
    .capture = &remote_capture_table,
    .settings = P_SETTINGS(settings),
};

HEDDLE_PLUGIN_EXPORT const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  if (host != NULL && host->abi_major == HEDDLE_ABI_MAJOR) return &table;
  p_fail(err, HEDDLE_EABI, 0, "plugin remote is built for ABI %d, the host has %d", HEDDLE_ABI_MAJOR,
         host != NULL ? (int)host->abi_major : 0);
  return NULL;
}
