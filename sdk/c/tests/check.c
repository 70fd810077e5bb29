/* What c.rs has run: every function once, and what must not harm. With an argument: without a server. */

/* For syscall. */
#define _DEFAULT_SOURCE
#include <minerva.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(holds)                                                                                                   \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #holds, minerva_last_error());          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const uint64_t second_ns = 1000ull * 1000 * 1000;

/* It needs CHECK. */
#include "check_pool.h"

static void everything(minerva_client *client, int is_served) {
    minerva_held *held = NULL;
    CHECK(minerva_deprioritize(client, MINERVA_LEVEL_IDLE, &held) == MINERVA_STATUS_OK && held != NULL);
    minerva_release(held);

    minerva_job *job = NULL;
    CHECK(minerva_job_begin(client, "sort", 500, &job) == MINERVA_STATUS_OK && job != NULL);
    uint32_t jobs = 7;
    CHECK(minerva_job_place(job, &jobs) == (is_served ? 2 : 0) && jobs == (is_served ? 3 : 0));
    minerva_job_end(job);

    minerva_debt *debt = NULL;
    minerva_owing owing = {0};
    owing.service_ns = 50 * second_ns;
    CHECK(minerva_debt_begin(client, "rebuild", &owing, 60 * second_ns, NULL, &debt) == MINERVA_STATUS_OK && debt != NULL);
    CHECK(minerva_debt_may_work(debt, 0) == !is_served);
    owing.done_ns = 10 * second_ns;
    minerva_debt_report(debt, &owing);
    CHECK(minerva_debt_status(debt) == MINERVA_STATUS_OK);
    minerva_debt_end(debt);

    minerva_level in_force = MINERVA_LEVEL_IDLE;
    CHECK(minerva_set_level(client, MINERVA_LEVEL_LOW, second_ns, &in_force) == MINERVA_STATUS_OK);
    CHECK(in_force == (is_served ? MINERVA_LEVEL_LOW : MINERVA_LEVEL_NORMAL));

    minerva_request request = {0};
    request.bytes = 500 << 20;
    request.done_within_ns = 20 * second_ns;
    minerva_operation *operation = NULL;
    CHECK(minerva_coordinate(client, &request, &operation) == MINERVA_STATUS_OK && operation != NULL);
    CHECK(minerva_begun(operation) == (is_served ? MINERVA_BEGUN_BY_TOLD : MINERVA_BEGUN_BY_UNSERVED));
    CHECK(minerva_finish(operation) == MINERVA_STATUS_OK);

    minerva_purchase purchase = {0};
    CHECK(minerva_boost(client, 3 * second_ns, NULL, &purchase) == MINERVA_STATUS_OK);
    CHECK(purchase.slices == (is_served ? 3 : 0));
    minerva_account account = {0};
    CHECK(minerva_credits(client, &account) == MINERVA_STATUS_OK);
    CHECK(account.held_micro_credits == (is_served ? 75000000 : 0));
}

static void tags(void) {
    uint16_t ioprio = 0;
    CHECK(minerva_tag_ioprio(200, 3, &ioprio) == MINERVA_STATUS_OK && ioprio == (2 << 13 | 3 << 8 | 8 << 3 | 1));
    CHECK(minerva_tag_ioprio(200, 0, &ioprio) == MINERVA_STATUS_OK && (ioprio >> 8 & 31) != 0);
    CHECK(minerva_tag_ioprio(255, 1, &ioprio) == MINERVA_STATUS_INVALID);
    CHECK(minerva_tag_ioprio(1, 32, &ioprio) == MINERVA_STATUS_INVALID);
    CHECK(minerva_tag_ioprio(1, 1, NULL) == MINERVA_STATUS_INVALID);
    CHECK(minerva_tag(0, 1) == MINERVA_STATUS_INVALID && strstr(minerva_last_error(), "1 to 254") != NULL);
    long before = syscall(SYS_ioprio_get, 1, 0);
    CHECK(minerva_tag(200, 3) == MINERVA_STATUS_OK && minerva_tag(12, 0) == MINERVA_STATUS_OK);
    minerva_untag();
    long tagged = syscall(SYS_ioprio_get, 1, 0);
    uint32_t levels = minerva_tag_levels();
    CHECK(levels == 254 || levels == 8);
    CHECK(tagged == (levels == 254 ? (2 << 13 | 3 << 8 | 8 << 3 | 1) : (2 << 13 | 1)));
    minerva_untag();
    minerva_untag();
    CHECK(syscall(SYS_ioprio_get, 1, 0) == before);
}

static void nothing_that_harms(minerva_client *client) {
    minerva_held *held = (minerva_held *)&held;
    minerva_operation *operation = NULL;
    minerva_request request = {0};
    CHECK(minerva_deprioritize(client, 77, &held) == MINERVA_STATUS_INVALID && held == NULL);
    CHECK(strstr(minerva_last_error(), "no level 77") != NULL && *minerva_last_refusal() == 0);
    CHECK(minerva_deprioritize(NULL, MINERVA_LEVEL_LOW, &held) == MINERVA_STATUS_INVALID);
    CHECK(strcmp(minerva_last_error(), "client is null") == 0);
    CHECK(minerva_deprioritize(client, MINERVA_LEVEL_LOW, NULL) == MINERVA_STATUS_INVALID);
    CHECK(minerva_coordinate(client, NULL, &operation) == MINERVA_STATUS_INVALID);
    CHECK(minerva_coordinate_or_pool(client, &request, 9, &operation) == MINERVA_STATUS_INVALID);
    int descriptor = 0;
    CHECK(minerva_create_coordinated(NULL, "/tmp/x", &descriptor) == MINERVA_STATUS_INVALID && descriptor == -1);
    no_file_that_harms();
    request.device = "\xff";
    CHECK(minerva_coordinate(client, &request, &operation) == MINERVA_STATUS_INVALID);
    request.device = NULL;
    request.path = "\xff";
    CHECK(minerva_coordinate(client, &request, &operation) == MINERVA_STATUS_INVALID);
    CHECK(minerva_boost(client, 0, NULL, NULL) == MINERVA_STATUS_INVALID);
    CHECK(minerva_boost_as(client, NULL, second_ns, NULL, NULL) == MINERVA_STATUS_INVALID);
    CHECK(minerva_credits(client, NULL) == MINERVA_STATUS_INVALID);
    minerva_client *other = NULL;
    CHECK(minerva_connect("nowhere", &other) == MINERVA_STATUS_UNFIT && other == NULL);
    CHECK(strstr(minerva_last_error(), "begins with unix:") != NULL);
    minerva_job *job = (minerva_job *)&job;
    CHECK(minerva_job_begin(client, NULL, 1, &job) == MINERVA_STATUS_INVALID && job == NULL);
    CHECK(minerva_job_place(NULL, NULL) == 0);
    minerva_owing owing = {0};
    minerva_debt *debt = (minerva_debt *)&debt;
    CHECK(minerva_debt_begin(client, NULL, &owing, 0, NULL, &debt) == MINERVA_STATUS_INVALID && debt == NULL);
    CHECK(minerva_debt_begin(client, "rebuild", NULL, 0, NULL, &debt) == MINERVA_STATUS_INVALID && debt == NULL);
    CHECK(minerva_debt_may_work(NULL, 0));
    minerva_debt_report(NULL, NULL);
    CHECK(minerva_debt_status(NULL) == MINERVA_STATUS_OK);
    minerva_debt_end(NULL);
    minerva_job_end(NULL);
    minerva_release(NULL);
    minerva_cancel(NULL);
    CHECK(minerva_finish(NULL) == MINERVA_STATUS_OK);
    minerva_disconnect(NULL);
    CHECK(minerva_absence(NULL) == NULL);
}

static void *in_a_thread(void *client) {
    CHECK(*minerva_last_error() == 0);
    minerva_held *held = NULL;
    CHECK(minerva_deprioritize(client, MINERVA_LEVEL_LOW, &held) == MINERVA_STATUS_OK);
    minerva_release(held);
    return NULL;
}

int main(int count, char **words) {
    int is_served = count == 1;
    find_places(words[0]);
    minerva_client *client = NULL;
    CHECK(minerva_connect(NULL, &client) == MINERVA_STATUS_OK);
    /* The first request is refused by the test, or shows that there is an agent and no server. */
    minerva_status first = minerva_boost(client, second_ns, NULL, NULL);
    CHECK(first == (is_served ? MINERVA_STATUS_REFUSED : MINERVA_STATUS_OK));
    if (is_served) {
        CHECK(strcmp(minerva_last_refusal(), "not-enough-credits") == 0);
        CHECK(strcmp(minerva_last_error(), "The account holds 3 credits.") == 0);
    }
    CHECK((minerva_absence(client) == NULL) == is_served);
    CHECK(minerva_boost_as(client, "own-key", second_ns, NULL, NULL) == MINERVA_STATUS_OK);
    everything(client, is_served);
    without_a_service();
    with_a_service();
    operations(client, is_served);
    tags();
    nothing_that_harms(client);
    pthread_t threads[4];
    for (int number = 0; number < 4; number++)
        CHECK(pthread_create(&threads[number], NULL, in_a_thread, client) == 0);
    for (int number = 0; number < 4; number++)
        CHECK(pthread_join(threads[number], NULL) == 0);
    /* What is held outlives its client. */
    minerva_held *held = NULL;
    CHECK(minerva_deprioritize(client, MINERVA_LEVEL_LOWEST, &held) == MINERVA_STATUS_OK);
    minerva_disconnect(client);
    minerva_release(held);
    puts("good");
    return 0;
}
