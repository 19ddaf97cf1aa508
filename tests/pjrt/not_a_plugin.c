/* A library that is no PJRT plugin: it has no GetPjrtApi. */
int penstock_not_a_plugin(void);

int penstock_not_a_plugin(void)
{
    return 0;
}
