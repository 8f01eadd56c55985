-- The names that occur in the log. They serve menus, and let a list without a tenant go tenant by tenant along the indexes
-- instead of scanning for a rare topic.

CREATE TABLE tenants (
    tenant_id  text COLLATE "C" PRIMARY KEY,
    first_seen timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE destinations (
    tenant_id      text COLLATE "C" NOT NULL,
    destination_id text COLLATE "C" NOT NULL,
    first_seen     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (destination_id, tenant_id)
);
CREATE INDEX idx_destinations_tenant ON destinations (tenant_id, destination_id);

CREATE TABLE topics (
    name           text COLLATE "C" PRIMARY KEY,
    indexed_fields jsonb       NOT NULL DEFAULT '[]',
    config         jsonb       NOT NULL DEFAULT '{}',
    created        timestamptz NOT NULL DEFAULT now(),
    updated        timestamptz NOT NULL DEFAULT now()
);

-- insert_many notes new names before its transaction, so these triggers normally find nothing to do. They are here because
-- a list would silently miss the rows of a tenant that some other program wrote. Sorted, so that two writers do not deadlock.
CREATE FUNCTION note_event_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tenants (tenant_id)
        SELECT DISTINCT n.tenant_id FROM written n
        WHERE NOT EXISTS (SELECT FROM tenants t WHERE t.tenant_id = n.tenant_id) ORDER BY 1
        ON CONFLICT DO NOTHING;
    INSERT INTO topics (name)
        SELECT DISTINCT n.topic FROM written n
        WHERE NOT EXISTS (SELECT FROM topics t WHERE t.name = n.topic) ORDER BY 1
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION note_attempt_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tenants (tenant_id)
        SELECT DISTINCT n.tenant_id FROM written n
        WHERE NOT EXISTS (SELECT FROM tenants t WHERE t.tenant_id = n.tenant_id) ORDER BY 1
        ON CONFLICT DO NOTHING;
    INSERT INTO destinations (tenant_id, destination_id)
        SELECT DISTINCT n.tenant_id, n.destination_id FROM written n
        WHERE NOT EXISTS (SELECT FROM destinations d
                          WHERE d.tenant_id = n.tenant_id AND d.destination_id = n.destination_id) ORDER BY 1, 2
        ON CONFLICT DO NOTHING;
    INSERT INTO topics (name)
        SELECT DISTINCT n.topic FROM written n
        WHERE NOT EXISTS (SELECT FROM topics t WHERE t.name = n.topic) ORDER BY 1
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER note_names AFTER INSERT ON events
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION note_event_names();
CREATE TRIGGER note_names AFTER INSERT ON attempts
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION note_attempt_names();
