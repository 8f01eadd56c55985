-- Smaller roll-ups of the same days, for what asks over months: attempts by destination without their topics, attempts and
-- events by topic without their tenants. Folding fills them together with the others; a reader adds the same differences.

CREATE TABLE attempts_by_destination (
    time           timestamptz      NOT NULL,
    tenant_id      text COLLATE "C" NOT NULL,
    destination_id text COLLATE "C" NOT NULL,
    status         text COLLATE "C" NOT NULL,
    code           text COLLATE "C",
    records        bigint           NOT NULL,
    first_attempts bigint           NOT NULL,
    retries        bigint           NOT NULL,
    manual_retries bigint           NOT NULL,
    numbers        numeric          NOT NULL,
    UNIQUE NULLS NOT DISTINCT (time, tenant_id, destination_id, status, code)
);

CREATE TABLE attempts_by_topic (
    time           timestamptz      NOT NULL,
    topic          text COLLATE "C" NOT NULL,
    status         text COLLATE "C" NOT NULL,
    code           text COLLATE "C",
    records        bigint           NOT NULL,
    first_attempts bigint           NOT NULL,
    retries        bigint           NOT NULL,
    manual_retries bigint           NOT NULL,
    numbers        numeric          NOT NULL,
    UNIQUE NULLS NOT DISTINCT (time, topic, status, code)
);

CREATE TABLE events_by_topic (
    time    timestamptz      NOT NULL,
    topic   text COLLATE "C" NOT NULL,
    records bigint           NOT NULL,
    PRIMARY KEY (time, topic)
);

-- Nobody folds until these hold what is folded already.
LOCK TABLE attempts_daily, events_daily IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO attempts_by_destination
    SELECT time, tenant_id, destination_id, status, code,
           sum(records), sum(first_attempts), sum(retries), sum(manual_retries), sum(numbers)
    FROM attempts_daily GROUP BY 1, 2, 3, 4, 5;
INSERT INTO attempts_by_topic
    SELECT time, topic, status, code, sum(records), sum(first_attempts), sum(retries), sum(manual_retries), sum(numbers)
    FROM attempts_daily GROUP BY 1, 2, 3, 4;
INSERT INTO events_by_topic SELECT time, topic, sum(records) FROM events_daily GROUP BY 1, 2;
