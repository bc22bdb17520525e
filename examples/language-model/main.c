/* Hears words on the serial line, and at the end of each line says how the text goes on, to the next full stop. */
#include <string.h>

#include "tvmgen_words.h"
#include "uaccel_port.h"
#include "words.h" /* as train.py writes it; the first word is the full stop */

enum { COUNT = sizeof words / sizeof words[0], FULL_STOP = 0, CONTROL_D = 4 };

static void say(const char *text)
{
    uaccel_port_write((const uint8_t *)text, (uint32_t)strlen(text));
}

/* The model takes a word, which it remembers, and says which word comes next. */
static int32_t hear(int32_t word)
{
    int32_t next = 0;
    struct tvmgen_words_inputs inputs = {.word = &word};
    struct tvmgen_words_outputs outputs = {&next};
    if (tvmgen_words_run(&inputs, &outputs) != TVMGEN_WORDS_OK) {
        uaccel_port_fault("the model failed");
    }
    return next;
}

static int32_t go_on(int32_t next)
{
    int32_t said;
    do {
        said = next;
        say(words[said]);
        say(said == FULL_STOP ? "\n" : " ");
        next = hear(said);
    } while (said != FULL_STOP);
    return next;
}

static int32_t number_of(const char *text)
{
    int32_t word = 0;
    while (word < COUNT && strcmp(words[word], text) != 0) {
        ++word;
    }
    return word;
}

int main(void)
{
    char text[16];
    uint32_t length = 0;
    int32_t next = FULL_STOP;
    uaccel_port_init();
    for (uint8_t byte = 0; byte != CONTROL_D;) {
        if (uaccel_port_read(&byte, 1) != 1) {
            continue;
        }
        if (byte > ' ') {
            text[length] = (char)byte;
            length += length < sizeof text - 1;
            continue;
        }
        text[length] = '\0';
        if (length > 0 && number_of(text) < COUNT) { /* others mean nothing to it */
            next = hear(number_of(text));
        }
        length = 0;
        if (byte == '\n') {
            next = go_on(next);
        }
    }
    uaccel_port_reset();
}
