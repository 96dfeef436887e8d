/* TLS as a carrier of a transport. OpenSSL is started without its configuration file and without a handler at exit. */
#define _GNU_SOURCE /* explicit_bzero */
#include "plugins/common/remote/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const unsigned char context_id[] = "heddle"; /* OpenSSL wants one where clients are verified */

enum { KEY_BYTES = 32, MOST_NAME = 128, LINE_ROOM = 512, BUFFER = 1 << 17 };

typedef struct state {
  SSL_CTX *ctx;
  SSL *ssl;
  BIO_METHOD *method;
  const char *psk;
} state;

/* ---- the socket under OpenSSL: no signal where the other end is gone */

static int bio_write(BIO *b, const char *data, int bytes) {
  const transport *t = BIO_get_data(b);
  BIO_clear_retry_flags(b);
  const ssize_t n = send(t->out, data, (size_t)bytes, MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_write(b);
  return (int)n;
}

static int bio_read(BIO *b, char *data, int bytes) {
  const transport *t = BIO_get_data(b);
  BIO_clear_retry_flags(b);
  const ssize_t n = recv(t->in, data, (size_t)bytes, 0);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(b);
  return (int)n;
}

static long bio_ctrl(BIO *b, int command, long number, void *pointer) {
  (void)b, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO *make_bio(transport *t, state *s) {
  s->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "heddle");
  if (s->method == NULL) return NULL;
  BIO_meth_set_write(s->method, bio_write);
  BIO_meth_set_read(s->method, bio_read);
  BIO_meth_set_ctrl(s->method, bio_ctrl);
  BIO *b = BIO_new(s->method);
  if (b == NULL) return NULL;
  BIO_set_data(b, t);
  BIO_set_init(b, 1);
  return b;
}

/* ---- reasons */

static void explain(char *why, size_t room, const char *what) {
  const unsigned long code = ERR_peek_last_error();
  const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
  snprintf(why, room, "%s%s%s", what, reason != NULL ? ": " : "", reason != NULL ? reason : "");
  ERR_clear_error();
}

/* ---- keys that both ends have */

static bool is_hex(const char *text, uint8_t key[KEY_BYTES]) {
  if (strlen(text) != 2 * (size_t)KEY_BYTES) return false;
  for (int i = 0; i < KEY_BYTES; i++) {
    unsigned n = 0;
    for (int k = 0; k < 2; k++) {
      const char c = text[2 * i + k];
      if (c >= '0' && c <= '9') n = n * 16 + (unsigned)(c - '0');
      else if (c >= 'a' && c <= 'f') n = n * 16 + (unsigned)(c - 'a') + 10;
      else return false;
    }
    key[i] = (uint8_t)n;
  }
  return true;
}

static FILE *open_private(const char *path, char *why) {
  struct stat about;
  FILE *f = fopen(path, "re");
  if (f == NULL) {
    snprintf(why, TLS_WHY, "the key file '%s' cannot be read: %s", path, strerror(errno));
    return NULL;
  }
  if (fstat(fileno(f), &about) == 0 && S_ISREG(about.st_mode) && (about.st_mode & (S_IRWXG | S_IRWXO)) == 0) return f;
  fclose(f);
  snprintf(why, TLS_WHY, "the key file '%s' may be read by others; only its owner may (chmod 600)", path);
  return NULL;
}

/* The key of that name, or the first where name is NULL, which found[MOST_NAME + 1] then has. */
static bool find_key(const char *path, const char *name, char *found, uint8_t key[KEY_BYTES], char *why) {
  char line[LINE_ROOM], word[16], hex[2 * KEY_BYTES + 2];
  bool good = false;
  FILE *f = open_private(path, why);
  if (f == NULL) return false;
  snprintf(why, TLS_WHY, "the key file '%s' has no line \"heddle-psk-1 NAME HEX\"%s", path,
           name != NULL ? " for the client's key" : "");
  while (!good && fgets(line, sizeof line, f) != NULL)
    good = sscanf(line, "%15s %128s %65s", word, found, hex) == 3 && strcmp(word, "heddle-psk-1") == 0 &&
           is_hex(hex, key) && (name == NULL || strcmp(name, found) == 0);
  fclose(f);
  explicit_bzero(line, sizeof line);
  explicit_bzero(hex, sizeof hex);
  return good;
}

static SSL_SESSION *session_of(SSL *ssl, const uint8_t key[KEY_BYTES]) {
  static const unsigned char cipher[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
  SSL_SESSION *session = SSL_SESSION_new();
  const SSL_CIPHER *which = SSL_CIPHER_find(ssl, cipher);
  if (session != NULL && which != NULL && SSL_SESSION_set1_master_key(session, key, KEY_BYTES) == 1 &&
      SSL_SESSION_set_cipher(session, which) == 1 && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
      SSL_SESSION_set1_id_context(session, context_id, sizeof context_id) == 1)
    return session;
  SSL_SESSION_free(session);
  return NULL;
}

/* The name that goes with the key is kept with the connection, which OpenSSL reads it from. */
static int client_key(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_bytes, SSL_SESSION **out) {
  char why[TLS_WHY], *name = SSL_get_app_data(ssl);
  uint8_t key[KEY_BYTES];
  const state *s = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
  *out = NULL;
  *id = NULL;
  *id_bytes = 0;
  if (md != NULL && EVP_MD_get_type(md) != NID_sha256) return 1;
  if (!find_key(s->psk, NULL, name, key, why)) return 0;
  *out = session_of(ssl, key);
  explicit_bzero(key, sizeof key);
  if (*out == NULL) return 0;
  *id = (const unsigned char *)name;
  *id_bytes = strlen(name);
  return 1;
}

static int server_key(SSL *ssl, const unsigned char *id, size_t id_bytes, SSL_SESSION **out) {
  char why[TLS_WHY], name[MOST_NAME + 1], found[MOST_NAME + 1];
  uint8_t key[KEY_BYTES];
  const state *s = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
  *out = NULL;
  if (id_bytes == 0 || id_bytes > MOST_NAME || memchr(id, 0, id_bytes) != NULL) return 1;
  memcpy(name, id, id_bytes);
  name[id_bytes] = '\0';
  if (!find_key(s->psk, name, found, key, why)) return 1; /* unknown: the handshake fails */
  *out = session_of(ssl, key);
  explicit_bzero(key, sizeof key);
  return *out != NULL;
}

bool tls_make_psk(const char *path, const char *name, char *why) {
  uint8_t key[KEY_BYTES];
  char hex[2 * KEY_BYTES + 1];
  if (RAND_priv_bytes(key, sizeof key) != 1) {
    explain(why, TLS_WHY, "no random bytes");
    return false;
  }
  for (int i = 0; i < KEY_BYTES; i++) snprintf(hex + 2 * i, 3, "%02x", key[i]);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  bool good = fd >= 0 && dprintf(fd, "heddle-psk-1 %s %s\n", name, hex) > 0;
  if (fd >= 0 && fsync(fd) != 0) good = false;
  if (!good) snprintf(why, TLS_WHY, "the key file '%s' cannot be written: %s", path, strerror(errno));
  if (fd >= 0) close(fd);
  explicit_bzero(key, sizeof key);
  explicit_bzero(hex, sizeof hex);
  return good;
}

/* ---- the carrier */

static int64_t outcome(transport *t, SSL *ssl, int rc, size_t bytes) {
  if (rc == 1) return (int64_t)bytes;
  const int what = SSL_get_error(ssl, rc);
  if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) return 0;
  if (t->why[0] == '\0' && what == SSL_ERROR_SSL) explain(t->why, sizeof t->why, "TLS");
  ERR_clear_error();
  return -1;
}

static int64_t tls_put(transport *t, const void *data, size_t bytes) {
  state *s = t->state;
  size_t n = 0;
  pthread_mutex_lock(&t->lock);
  const int rc = SSL_write_ex(s->ssl, data, bytes, &n);
  const int64_t moved = outcome(t, s->ssl, rc, n);
  pthread_mutex_unlock(&t->lock);
  return moved;
}

static int64_t tls_get(transport *t, void *data, size_t bytes) {
  state *s = t->state;
  size_t n = 0;
  pthread_mutex_lock(&t->lock);
  const int rc = SSL_read_ex(s->ssl, data, bytes, &n);
  const int64_t moved = outcome(t, s->ssl, rc, n);
  pthread_mutex_unlock(&t->lock);
  return moved;
}

static void free_state(state *s) {
  if (s == NULL) return;
  SSL_free(s->ssl);
  SSL_CTX_free(s->ctx);
  BIO_meth_free(s->method);
  free(s);
}

static void tls_close(transport *t) {
  free_state(t->state);
  t->state = NULL;
}

static const transport_carrier tls_carrier = {tls_put, tls_get, tls_close};

/* ---- the handshake */

/* OpenSSL names neither the file nor why it cannot be opened. */
static bool can_read(const char *path, char *why) {
  FILE *f = fopen(path, "rb");
  if (f == NULL) snprintf(why, TLS_WHY, "%s: %s", path, strerror(errno));
  else (void)fclose(f);
  return f != NULL;
}

static bool fail_file(const char *path, const char *what, char *why) {
  char words[256];
  snprintf(words, sizeof words, "%.160s: %s", path, what);
  explain(why, TLS_WHY, words);
  return false;
}

static bool load_files(SSL_CTX *ctx, const tls_options *o, char *why) {
  if (!can_read(o->ca, why) || !can_read(o->cert, why) || !can_read(o->key, why)) return false;
  if (SSL_CTX_load_verify_locations(ctx, o->ca, NULL) != 1)
    return fail_file(o->ca, "it is no certificate of an authority in PEM", why);
  if (SSL_CTX_use_certificate_chain_file(ctx, o->cert) != 1)
    return fail_file(o->cert, "it is no certificate in PEM", why);
  if (SSL_CTX_use_PrivateKey_file(ctx, o->key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(ctx) != 1)
    return fail_file(o->key, "it is not the key of the certificate in PEM", why);
  return true;
}

static SSL_CTX *make_context(state *s, const tls_options *o, char *why) {
  SSL_CTX *ctx = SSL_CTX_new(o->is_server ? TLS_server_method() : TLS_client_method());
  if (ctx == NULL) {
    explain(why, TLS_WHY, "TLS cannot be started");
    return NULL;
  }
  s->ctx = ctx;
  SSL_CTX_set_app_data(ctx, s);
  (void)SSL_CTX_set_session_id_context(ctx, context_id, sizeof context_id);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_default_read_buffer_len(ctx, BUFFER);
  SSL_CTX_set_read_ahead(ctx, 1);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 || SSL_CTX_set_num_tickets(ctx, 0) != 1 ||
      SSL_CTX_set_ciphersuites(ctx, o->psk != NULL ? "TLS_AES_128_GCM_SHA256"
                                                   : "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                                     "TLS_CHACHA20_POLY1305_SHA256") != 1) {
    explain(why, TLS_WHY, "TLS 1.3 is not available");
    return NULL;
  }
  if (o->psk != NULL) {
    char name[MOST_NAME + 1];
    uint8_t key[KEY_BYTES];
    if (!find_key(o->psk, NULL, name, key, why)) return NULL;
    explicit_bzero(key, sizeof key);
    if (o->is_server) SSL_CTX_set_psk_find_session_callback(ctx, server_key);
    else SSL_CTX_set_psk_use_session_callback(ctx, client_key);
    return ctx;
  }
  return load_files(ctx, o, why) ? ctx : NULL;
}

/* Whom the other end must be: an address is compared with the certificate's addresses. */
static bool expect(SSL *ssl, const char *name, char *why) {
  X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
  if (name == NULL) return true;
  if (X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1) return true;
  ERR_clear_error();
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1) return true;
  explain(why, TLS_WHY, "the name of the other end cannot be checked");
  return false;
}

/* The library's words do not say what a key has to do with it. */
static void add_cause(const tls_options *o, int reason, char *why) {
  const size_t used = strlen(why);
  if (reason == SSL_R_WRONG_VERSION_NUMBER) snprintf(why + used, TLS_WHY - used, "; the other end speaks no TLS");
  else if (o->psk != NULL && reason != 0)
    snprintf(why + used, TLS_WHY - used,
             o->is_server ? "; the client has none of the keys of '%.100s', or shows a certificate"
                          : "; the server does not know the key of '%.100s', or asks for certificates",
             o->psk);
}

static void refuse(SSL *ssl, const tls_options *o, char *why) {
  const long result = SSL_get_verify_result(ssl);
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  if (result != X509_V_OK)
    snprintf(why, TLS_WHY, "TLS: the other end's certificate is refused: %s", X509_verify_cert_error_string(result));
  else {
    explain(why, TLS_WHY, "TLS: the handshake failed");
    add_cause(o, reason, why);
  }
  ERR_clear_error();
}

static bool shake(transport *t, SSL *ssl, const tls_options *o, char *why) {
  const int64_t until = transport_now_ms() + o->limit_ms;
  for (;;) {
    const int rc = SSL_do_handshake(ssl);
    if (rc == 1) return true;
    const int what = SSL_get_error(ssl, rc);
    if (what != SSL_ERROR_WANT_READ && what != SSL_ERROR_WANT_WRITE) {
      refuse(ssl, o, why);
      return false;
    }
    const int64_t left = until - transport_now_ms();
    struct pollfd p = {.fd = t->in, .events = what == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT};
    if (left <= 0 || poll(&p, 1, (int)left) == 0) {
      snprintf(why, TLS_WHY, "TLS: the handshake took too long");
      return false;
    }
  }
}

static state *make_state(const tls_options *o, char *why) {
  state *s = calloc(1, sizeof *s);
  snprintf(why, TLS_WHY, "no memory for TLS");
  if (s == NULL || OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1) {
    free(s);
    return NULL;
  }
  ERR_clear_error();
  s->psk = o->psk;
  if (make_context(s, o, why) != NULL) return s;
  free_state(s);
  return NULL;
}

bool tls_check(const tls_options *o, char *why) {
  state *s = make_state(o, why);
  free_state(s);
  return s != NULL;
}

bool tls_start(transport *t, const tls_options *o, char *why) {
  char name[MOST_NAME + 1] = "";
  state *s = make_state(o, why);
  bool good = s != NULL;
  if (good) {
    BIO *bio = make_bio(t, s);
    s->ssl = SSL_new(s->ctx);
    good = bio != NULL && s->ssl != NULL;
    if (good) SSL_set_bio(s->ssl, bio, bio);
    else BIO_free(bio);
  }
  if (good) {
    SSL_set_app_data(s->ssl, name);
    if (o->is_server) SSL_set_accept_state(s->ssl);
    else SSL_set_connect_state(s->ssl);
    good = (o->psk != NULL || expect(s->ssl, o->name, why)) && shake(t, s->ssl, o, why);
  }
  if (good && o->psk != NULL && SSL_session_reused(s->ssl) != 1) {
    snprintf(why, TLS_WHY, "TLS: the other end did not use the key");
    good = false;
  }
  if (!good) {
    free_state(s);
    return false;
  }
  SSL_set_app_data(s->ssl, NULL);
  s->psk = NULL;
  t->state = s;
  t->carrier = &tls_carrier;
  return true;
}
