/* A generic application: any model, by its description. Samples on stdin, their outputs on stdout. */
#include <stdio.h>

#include "uaccel_model.h"

int main(void)
{
    const struct uaccel_model *const model = &uaccel_model;
    for (int samples = getchar(); samples > 0; --samples) {
        for (uint32_t i = 0; i < model->input_count; ++i) {
            if (fread(model->inputs[i].data, model->inputs[i].bytes, 1, stdin) != 1) {
                return 1;
            }
        }
        if (model->run() != 0) {
            return 2;
        }
        for (uint32_t i = 0; i < model->output_count; ++i) {
            fwrite(model->outputs[i].data, model->outputs[i].bytes, 1, stdout);
        }
    }
    return 0;
}
