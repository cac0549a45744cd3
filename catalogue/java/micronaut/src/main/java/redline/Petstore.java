package redline;

import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.runtime.Micronaut;
import io.micronaut.serde.annotation.Serdeable;
import java.util.List;

@Controller
public class Petstore {
    @Serdeable
    record Pet(long id, String name, String tag) {}

    @Get("/v1/pets")
    List<Pet> pets() {
        return List.of(new Pet(1, "catten", "cat"), new Pet(2, "doggy", "dog"));
    }

    public static void main(String[] args) {
        Micronaut.run(Petstore.class, args);
    }
}
