/* Runs of models at the same time: of two models and a twin in threads or, with INTERRUPT, in a signal that comes in the
 * middle of another one's run. With POOLS one model in two threads, each with a workspace of its own; with SHARED both
 * take the static one, which nobody may. Every output is that of the first run. */
#define _XOPEN_SOURCE 700

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "tvmgen_gesture.h"
#include "tvmgen_residual.h"

enum { RUNS = 300, INTERRUPTS = 100 };

static int8_t motion[TVMGEN_GESTURE_MOTION_SIZE], image[TVMGEN_RESIDUAL_IMAGE_SIZE];
static volatile sig_atomic_t interrupts;

struct job {
    int (*run)(struct job *);
    int failures;
    int8_t first[64], again[64], features[TVMGEN_RESIDUAL_TANH_1_SIZE];
#ifdef POOLS
    uint64_t pool[TVMGEN_GESTURE_WORKSPACE_SIZE / 8 + 1];
#endif
};

static int run_gesture(struct job *job)
{
    struct tvmgen_gesture_inputs inputs = {motion};
    struct tvmgen_gesture_outputs outputs = {job->again};
#ifdef POOLS
    struct tvmgen_gesture_workspace_pools pools = {(uint8_t *)job->pool};
    return tvmgen_gesture_run(&inputs, &outputs, &pools);
#else
    return tvmgen_gesture_run(&inputs, &outputs);
#endif
}

static int run_residual(struct job *job)
{
    struct tvmgen_residual_inputs inputs = {image};
    struct tvmgen_residual_outputs outputs = {job->features, job->again};
    return tvmgen_residual_run(&inputs, &outputs);
}

static void once(struct job *job)
{
    memset(job->again, 0, sizeof job->again);
    job->failures += job->run(job) != 0 || memcmp(job->first, job->again, sizeof job->first) != 0;
}

static void begin(struct job *job)
{
    (void)job->run(job);
    memcpy(job->first, job->again, sizeof job->first);
}

static struct job one = {.run = run_gesture}, other = {.run = run_residual};
#if defined POOLS || defined SHARED
static struct job twin = {.run = run_gesture};
#endif

#ifdef INTERRUPT
static void interrupted(int number)
{
    (void)number;
    once(&one);
    interrupts = interrupts + 1;
}

static void at_once(void)
{
    const struct itimerval soon = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {0};
    action.sa_handler = interrupted;
    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &soon, NULL);
    while (interrupts < INTERRUPTS) {
        once(&other);
    }
    (void)setitimer(ITIMER_REAL, &never, NULL);
}
#else
static void *often(void *job)
{
    for (int i = 0; i < RUNS; ++i) {
        once(job);
    }
    return NULL;
}

static void at_once(void)
{
    struct job *const jobs[] = {&one, &other,
#if defined POOLS || defined SHARED
                                &twin
#endif
    };
    pthread_t threads[3];
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; ++i) {
        (void)pthread_create(&threads[i], NULL, often, jobs[i]);
    }
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; ++i) {
        (void)pthread_join(threads[i], NULL);
    }
}
#endif

int main(void)
{
    memset(motion, 17, sizeof motion);
    memset(image, 40, sizeof image);
    begin(&one);
    begin(&other);
#if defined POOLS || defined SHARED
    begin(&twin);
#endif
    at_once();
    (void)printf("%d failures\n", one.failures + other.failures);
    return 0;
}
