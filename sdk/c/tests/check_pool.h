/* Files in the cache's pool: without its service, and with one that this program plays. */

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct path {
    char text[500];
};

/* Of this run alone, and gone with the program's own. */
static char directory[400];

static struct path at(const char *name) {
    struct path path;
    int length = snprintf(path.text, sizeof path.text, "%s/%s", directory, name);
    CHECK(length > 0 && (size_t)length < sizeof path.text);
    return path;
}

/* Before anything is asked of the library, which looks at the environment in threads of its own. */
static void find_places(const char *program) {
    int length = snprintf(directory, sizeof directory, "%s.XXXXXX", program);
    CHECK(length > 0 && (size_t)length < sizeof directory && mkdtemp(directory) != NULL);
    umask(022);
    CHECK(setenv("TMPDIR", directory, 1) == 0 && setenv("MINERVA_CACHE_SOCKET", at("pool.sock").text, 1) == 0);
}

enum { QUESTIONS_MAX = 4 };

/* A service that gives so many answers, a question each. */
struct service {
    int listener;
    int answered;
    char answers[QUESTIONS_MAX][4000];
    char asked[QUESTIONS_MAX][4000];
    pthread_t thread;
};

static void *serve(void *pointer) {
    struct service *service = pointer;
    for (; service->answered < QUESTIONS_MAX; service->answered++) {
        int stream = accept(service->listener, NULL, NULL);
        /* It was stopped. */
        if (stream < 0)
            break;
        char *asked = service->asked[service->answered];
        for (size_t length = 0; strchr(asked, '\n') == NULL; length++)
            CHECK(length < sizeof service->asked[0] - 1 && read(stream, asked + length, 1) == 1);
        CHECK(dprintf(stream, "%s\n", service->answers[service->answered]) > 0 && close(stream) == 0);
    }
    return NULL;
}

static void start(struct service *service) {
    struct sockaddr_un address = {0};
    struct path socket_path = at("pool.sock");
    address.sun_family = AF_UNIX;
    CHECK(strlen(socket_path.text) < sizeof address.sun_path);
    strcpy(address.sun_path, socket_path.text);
    service->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(service->listener >= 0);
    CHECK(bind(service->listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(service->listener, QUESTIONS_MAX) == 0);
    CHECK(pthread_create(&service->thread, NULL, serve, service) == 0);
}

/* Nobody serves from then on. */
static void stop(struct service *service, int answered) {
    /* Who waits in `accept` is woken by it. */
    CHECK(shutdown(service->listener, SHUT_RDWR) == 0);
    CHECK(pthread_join(service->thread, NULL) == 0 && service->answered == answered);
    CHECK(close(service->listener) == 0 && unlink(at("pool.sock").text) == 0);
}

static const char refused[] = "{\"answer\":\"refused\",\"why\":\"the pool is full\"}";

/* What is to be written is the file `data`. */
static void answer_deferring(char *answer) {
    int length = snprintf(answer, 4000, "{\"answer\":\"deferring\",\"id\":1,\"data\":\"%s\"}", at("data").text);
    CHECK(length > 0 && length < 4000);
}

static void answer_status(char *answer, unsigned left_bytes) {
    static const char tree[] = "\"is_served\":true,\"has_passthrough\":true,\"bytes\":0,\"bytes_max\":9,\"files\":0,"
                               "\"files_max\":9,\"open\":0,\"spilled_files\":0,\"spilled_bytes\":0,"
                               "\"bytes_written\":0,\"bytes_read\":0,\"refused\":0";
    int length = snprintf(answer, 4000,
                          "{\"answer\":\"status\",\"tenants\":[{\"name\":\"web\","
                          "\"temporary\":{\"path\":\"%s\",%s},"
                          "\"stable\":{\"path\":\"%s\",%s,\"deferrable_bytes\":%u,\"device\":\"8:16\"}}]}",
                          at("temporary").text, tree, at("stable").text, tree, left_bytes);
    CHECK(length > 0 && length < 4000);
}

static void write_and_close(int descriptor, const char *text) {
    CHECK(descriptor >= 0 && write(descriptor, text, strlen(text)) == (ssize_t)strlen(text) && close(descriptor) == 0);
}

/* Whether a file holds this, and nothing else. */
static int holds(struct path path, const char *text) {
    char found[100] = {0};
    int descriptor = open(path.text, O_RDONLY);
    ssize_t length = descriptor < 0 ? -1 : read(descriptor, found, sizeof found - 1);
    close(descriptor);
    return length >= 0 && strcmp(found, text) == 0;
}

static int has_mode(struct path path, mode_t mode) {
    struct stat shown;
    return lstat(path.text, &shown) == 0 && shown.st_mode == (S_IFREG | mode);
}

static void create_deferred(const char *name, const char *text) {
    int descriptor = -1;
    minerva_status status = minerva_create_deferred(at(name).text, MINERVA_POOL_TEMPORARY, 0600, 4, &descriptor);
    CHECK(status == MINERVA_STATUS_OK);
    write_and_close(descriptor, text);
}

static void append_cached(uint32_t pool, const char *text) {
    int descriptor = -1;
    int flags = O_WRONLY | O_CREAT | O_APPEND;
    CHECK(minerva_open_cached("scratch", pool, flags, 0640, &descriptor) == MINERVA_STATUS_OK);
    write_and_close(descriptor, text);
}

static void without_a_service(void) {
    create_deferred("alone", "before");
    create_deferred("alone", "text");
    CHECK(holds(at("alone"), "text") && has_mode(at("alone"), 0600));
    append_cached(MINERVA_POOL_TEMPORARY, "one");
    append_cached(MINERVA_POOL_STABLE, "two");
    struct path own;
    snprintf(own.text, sizeof own.text, "minerva-cache-%u/scratch", (unsigned)getuid());
    CHECK(holds(at(own.text), "onetwo") && has_mode(at(own.text), 0640));
    /* What it is opened for is what can be done. */
    int descriptor = -1;
    CHECK(minerva_open_cached("scratch", MINERVA_POOL_STABLE, O_RDONLY, 0, &descriptor) == MINERVA_STATUS_OK);
    CHECK(write(descriptor, "x", 1) == -1 && close(descriptor) == 0);
    CHECK(minerva_open_cached("scratch", MINERVA_POOL_STABLE, O_RDWR | O_TRUNC, 0, &descriptor) == MINERVA_STATUS_OK);
    write_and_close(descriptor, "new");
    CHECK(holds(at(own.text), "new"));
}

static void with_a_service(void) {
    struct service service = {0};
    answer_deferring(service.answers[0]);
    strcpy(service.answers[1], refused);
    answer_status(service.answers[2], 0);
    answer_status(service.answers[3], 0);
    write_and_close(creat(at("data").text, 0600), "");
    CHECK(mkdir(at("temporary").text, 0700) == 0 && mkdir(at("stable").text, 0700) == 0);
    start(&service);
    create_deferred("deferred", "text");
    create_deferred("refused", "other");
    append_cached(MINERVA_POOL_TEMPORARY, "memory");
    append_cached(MINERVA_POOL_STABLE, "disk");
    stop(&service, 4);
    /* It puts no link to the place. */
    CHECK(holds(at("data"), "text") && access(at("deferred").text, F_OK) == -1);
    const char *asked = service.asked[0];
    CHECK(strstr(asked, "\"ask\":\"defer\"") != NULL && strstr(asked, "/deferred\"") != NULL);
    CHECK(strstr(asked, "\"pool\":\"temporary\"") != NULL && strstr(asked, "\"bytes\":4") != NULL);
    /* 0600 */
    CHECK(strstr(asked, "\"mode\":384") != NULL);
    CHECK(holds(at("refused"), "other"));
    CHECK(holds(at("temporary/scratch"), "memory") && holds(at("stable/scratch"), "disk"));
}

/* Asks, while a pool has room for so many bytes, to write four; the operation, whose file is made. */
static minerva_operation *written(minerva_client *client, struct service *service, minerva_begun_by begun,
                                  const char *name) {
    minerva_request request = {0};
    struct path path = at(name);
    request.bytes = 4;
    request.access = MINERVA_ACCESS_SEQUENTIAL_WRITE;
    request.path = path.text;
    minerva_operation *operation = NULL;
    start(service);
    CHECK(minerva_coordinate_or_pool(client, &request, MINERVA_POOL_STABLE, &operation) == MINERVA_STATUS_OK);
    CHECK(minerva_begun(operation) == begun);
    int descriptor = -1;
    CHECK(minerva_create_coordinated(operation, path.text, &descriptor) == MINERVA_STATUS_OK);
    write_and_close(descriptor, name);
    return operation;
}

/* One that may go to the pool, and is told so if there is a server, and one for which the pool has no room. */
static void operations(minerva_client *client, int is_served) {
    struct service service = {0};
    answer_status(service.answers[0], 7);
    answer_deferring(service.answers[1]);
    minerva_begun_by begun = is_served ? MINERVA_BEGUN_BY_IN_POOL : MINERVA_BEGUN_BY_UNSERVED;
    minerva_operation *operation = written(client, &service, begun, "pooled");
    stop(&service, is_served ? 2 : 0);
    CHECK(holds(at(is_served ? "data" : "pooled"), "pooled") && (access(at("pooled").text, F_OK) == 0) == !is_served);
    const char *asked = service.asked[1];
    CHECK(!is_served || (strstr(asked, "\"pool\":\"stable\"") != NULL && strstr(asked, "\"bytes\":4") != NULL));
    CHECK(minerva_finish(operation) == MINERVA_STATUS_OK);

    struct service full = {0};
    answer_status(full.answers[0], 3);
    begun = is_served ? MINERVA_BEGUN_BY_TOLD : MINERVA_BEGUN_BY_UNSERVED;
    operation = written(client, &full, begun, "straight");
    stop(&full, is_served ? 1 : 0);
    CHECK(holds(at("straight"), "straight"));
    minerva_cancel(operation);
}

static void no_file_that_harms(void) {
    int descriptor = 0;
    CHECK(minerva_create_deferred(NULL, MINERVA_POOL_STABLE, 0600, 0, &descriptor) == MINERVA_STATUS_INVALID);
    CHECK(descriptor == -1);
    CHECK(minerva_create_deferred(at("x").text, 9, 0600, 0, &descriptor) == MINERVA_STATUS_INVALID);
    CHECK(minerva_create_deferred(at("x").text, MINERVA_POOL_STABLE, 0600, 0, NULL) == MINERVA_STATUS_INVALID);
    descriptor = 0;
    CHECK(minerva_create_deferred(at("none/x").text, MINERVA_POOL_STABLE, 0600, 0, &descriptor) == MINERVA_STATUS_FILE);
    CHECK(descriptor == -1 && strstr(minerva_last_error(), "none/x") != NULL);
    descriptor = 0;
    CHECK(minerva_open_cached(NULL, MINERVA_POOL_STABLE, O_RDONLY, 0, &descriptor) == MINERVA_STATUS_INVALID);
    CHECK(descriptor == -1);
    CHECK(minerva_open_cached("x", 9, O_RDONLY, 0, &descriptor) == MINERVA_STATUS_INVALID);
    CHECK(minerva_open_cached("x", MINERVA_POOL_STABLE, O_RDONLY, 0, NULL) == MINERVA_STATUS_INVALID);
    descriptor = 0;
    CHECK(minerva_open_cached("../x", MINERVA_POOL_STABLE, O_RDWR | O_CREAT, 0600, &descriptor) == MINERVA_STATUS_FILE);
    CHECK(descriptor == -1 && strstr(minerva_last_error(), "out of the tree") != NULL);
    CHECK(access(at("x").text, F_OK) == -1);
}
