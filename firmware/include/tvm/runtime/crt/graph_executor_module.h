/* Of applications that need microTVM's own C runtime. */
#error "microTVM's run-time calls (graph_executor_module) are not there: call tvmgen_<name>_run of tvmgen_<name>.h, or create the project with --standalone-crt"
